package purgatory_test

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/purgatory"
	"github.com/tickless/tickless/timer"
)

// stressFor is the length of a stress test: minutes with TICKLESS_STRESS=long.
func stressFor() time.Duration {
	if os.Getenv("TICKLESS_STRESS") == "long" {
		return 2 * time.Minute
	}
	return 2 * time.Second
}

// A stressed operation checks the order of its own calls, and counts them for the test.
type stressed struct {
	purgatory.Delayed[int]
	p     *purgatory.Purgatory[int]
	t     *testing.T
	keys  []int
	ready atomic.Bool

	trying             atomic.Bool
	completed, expired atomic.Int32
	// told counts the calls that returned true. handed counts the calls that removed
	// the operation and did not add it again.
	told, handed atomic.Int32
}

func (o *stressed) TryComplete() bool {
	if o.trying.Swap(true) {
		o.t.Error("TryComplete twice at a time")
	}
	if o.IsCompleted() {
		o.t.Error("TryComplete of a completed operation")
	}
	ready := o.ready.Load()
	o.trying.Store(false)
	return ready
}

func (o *stressed) OnComplete() {
	if o.completed.Inc() != 1 || !o.IsCompleted() {
		o.t.Error("OnComplete twice, or of an operation that is not complete")
	}
	if rand.IntN(4) == 0 {
		o.p.CheckAndComplete(o.keys[rand.IntN(len(o.keys))]) // a callback checks the same key
	}
}

func (o *stressed) OnExpiration() {
	if o.completed.Load() != 1 || o.expired.Inc() != 1 {
		o.t.Error("OnExpiration before OnComplete, or twice")
	}
}

// Many goroutines complete, force, expire, cancel and add operations on the same few
// keys, with a Shutdown in between.
func TestStress_AllAtOnce(t *testing.T) {
	warmGoroutines(10_000)
	before, rounds := heap(), 0
	for end := time.Now().Add(stressFor()); time.Now().Before(end) && !t.Failed(); rounds++ {
		stressRound(t, rounds)
	}
	t.Logf("%d rounds", rounds)
	require.Less(t, heap()-before, 1_000_000, "bytes that stay in use")
}

// warmGoroutines runs n goroutines at once. The runtime keeps their memory for new
// goroutines, so that a later measurement of the heap does not see it grow.
func warmGoroutines(n int) {
	var wg sync.WaitGroup
	over := make(chan struct{})
	for range n {
		wg.Go(func() { <-over })
	}
	close(over)
	wg.Wait()
}

func stressRound(t *testing.T, round int) {
	const goroutines, keySpace = 8, 10
	s := timer.New()
	p := purgatory.New[int](s, purgatory.WithShards(1<<(round%4)))
	all := make([][]*stressed, goroutines)
	// begun and ended count calls of CancelForKey. While the counts differ, or after
	// shutdown is set, an operation may be removed at any time.
	var begun, ended atomic.Int64
	var shutdown atomic.Bool
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(round), uint64(g)))
			give := func(o *stressed) {
				done, err := p.CompleteOrWatch(o, time.Duration(rng.IntN(3_000_000)-1000), o.keys...)
				switch {
				case err != nil:
					o.handed.Inc()
				case done:
					o.told.Inc()
				}
			}
			for {
				select {
				case <-stop:
					return
				default:
				}
				switch rng.IntN(8) {
				default:
					o := &stressed{p: p, t: t}
					for range 1 + rng.IntN(4) {
						o.keys = append(o.keys, rng.IntN(keySpace))
					}
					o.ready.Store(rng.IntN(10) == 0)
					all[g] = append(all[g], o)
					give(o)
				case 3, 4:
					if len(all[g]) > 0 {
						o := all[g][len(all[g])-1-rng.IntN(min(len(all[g]), 50))]
						quiet, cancels := ended.Load(), begun.Load()
						o.ready.Store(true)
						p.CheckAndComplete(o.keys[rng.IntN(len(o.keys))])
						waited := o.handed.Load() == 0 && quiet == cancels && begun.Load() == cancels && !shutdown.Load()
						if waited && !o.IsCompleted() {
							t.Error("CheckAndComplete left a ready operation waiting")
						}
					}
				case 5:
					if len(all[g]) > 0 {
						o := all[g][len(all[g])-1-rng.IntN(min(len(all[g]), 50))]
						if o.ForceComplete() {
							o.told.Inc()
						}
					}
				case 6:
					begun.Inc()
					for _, taken := range p.CancelForKey(rng.IntN(keySpace)) {
						o := taken.(*stressed)
						switch rng.IntN(3) {
						case 0:
							give(o)
						case 1:
							if o.ForceComplete() {
								o.told.Inc()
							}
						default:
							// The operation is not added again. It stays incomplete,
							// unless another goroutine calls ForceComplete.
							o.handed.Inc()
						}
					}
					ended.Inc()
				case 7:
					p.Len()
					p.Stats()
				}
			}
		})
	}
	time.Sleep(time.Duration(20+round%7*10) * time.Millisecond)
	shutdown.Store(true)
	pending, err := shutDown(context.Background(), p) // races with all other calls
	require.NoError(t, err)
	time.Sleep(time.Millisecond)
	close(stop)
	wg.Wait()
	require.NoError(t, s.Shutdown(context.Background()))
	require.Empty(t, slices.Collect(leftover(s)), "timers of operations that were handed back")
	for _, o := range pending {
		o.(*stressed).handed.Inc()
	}

	for _, ops := range all {
		for _, o := range ops {
			completed, expired, told, handed := o.completed.Load(), o.expired.Load(), o.told.Load(), o.handed.Load()
			once := completed == 1 || completed == 0 && handed == 1
			if !once || (completed == 1) != o.IsCompleted() || told+expired > completed {
				t.Fatalf("completed %d, expired %d, told %d, handed back %d", completed, expired, told, handed)
			}
		}
	}
	st := p.Stats()
	require.Zero(t, st.Delayed)
	require.Zero(t, st.Watched)
	require.Zero(t, st.Keys)
	require.Zero(t, st.Panics)
	balanced(t, st)
	require.EqualValues(t, len(pending), st.HandedBack)
}
