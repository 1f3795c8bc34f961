package idle_test

import (
	"context"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/idle"
)

// stressed is a watched thing of a stress test.
type stressed struct {
	// touched is the time of the latest touch that returned true. An eviction must not
	// report an earlier activity.
	touched atomic.Int64
	stopped atomic.Bool
	evicted atomic.Int32
	since   atomic.Int64
	at      atomic.Int64
	timeout time.Duration
}

// stressFor is the length of a stress test: minutes with TICKLESS_STRESS=long.
func stressFor() time.Duration {
	if os.Getenv("TICKLESS_STRESS") == "long" {
		return 2 * time.Minute
	}
	return 2 * time.Second
}

// Touches, stops, timeout changes and watches race with evictions and with Close. No
// thing is lost, or evicted early, twice or after a Stop.
func TestStress_TouchesRaceWithEviction(t *testing.T) {
	var rounds, touches, evictions int
	var rearmed uint64
	for end := time.Now().Add(stressFor()); time.Now().Before(end); rounds++ {
		n, e, r := stressRound(t, rounds)
		touches, evictions, rearmed = touches+n, evictions+e, rearmed+r
	}
	t.Logf("%d rounds, %d touches, %d evictions, %d checks without an eviction", rounds, touches, evictions, rearmed)
}

func stressRound(t *testing.T, round int) (touches, evictions int, rearmed uint64) {
	var m *idle.Monitor[*stressed]
	m = idle.New(func(x *stressed, since time.Time) {
		x.at.Store(int64(m.Now()))
		x.since.Store(int64(since.Sub(m.Time(0))))
		x.evicted.Inc()
	}, idle.WithTick(time.Duration(1+round%3*20)*time.Microsecond))
	const things = 4
	type watched struct {
		*stressed
		*idle.Entry[*stressed]
	}
	var mu sync.Mutex
	var all []watched
	var count atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(round), uint64(g)))
			for {
				select {
				case <-stop:
					return
				default:
				}
				var mine []watched
				closed := false
				for range things {
					x := &stressed{timeout: time.Duration(20+rng.IntN(100)) * time.Microsecond}
					e, err := m.Watch(x, x.timeout)
					if closed = err != nil; closed {
						break
					}
					x.touched.Store(int64(e.Last()))
					mine = append(mine, watched{x, e})
				}
				// One or two goroutines touch the things. Sometimes they pause for about
				// the timeout.
				var in sync.WaitGroup
				for k := range 1 + rng.IntN(8)/7 {
					seed := rng.Uint64()
					in.Go(func() {
						rng := rand.New(rand.NewPCG(seed, uint64(k)))
						for alive := things; alive > 0; {
							alive = 0
							for _, w := range mine {
								at := m.Now() - idle.Moment(rng.IntN(3)*1000)
								if w.TouchAt(at) {
									alive++
									count.Inc()
									raise(&w.touched, int64(at))
								}
								switch rng.IntN(1000) {
								case 0:
									if w.Stop() {
										w.stopped.Store(true)
									}
								case 1:
									w.SetTimeout(w.timeout + time.Duration(rng.IntN(50))*time.Microsecond)
								case 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15:
									// Wait until about the time of the eviction.
									pause := idle.Moment(w.timeout) * idle.Moment(80+rng.IntN(40)) / 100
									for begin := m.Now(); m.Now()-begin < pause; {
									}
								}
							}
						}
					})
				}
				in.Wait()
				mu.Lock()
				all = append(all, mine...)
				mu.Unlock()
				if closed {
					return
				}
			}
		})
	}
	time.Sleep(100 * time.Millisecond)
	left := leftover(m)
	close(stop)
	wg.Wait()
	require.NoError(t, m.Shutdown(context.Background()))
	left = append(left, leftover(m)...)

	st := m.Stats()
	balanced(t, st)
	require.Zero(t, st.Watching)
	require.Len(t, left, int(st.HandedBack))
	handedBack := map[*stressed]bool{}
	for _, x := range left {
		require.False(t, handedBack[x], "handed back twice")
		handedBack[x] = true
	}
	var stops int
	for _, w := range all {
		n := int(w.evicted.Load())
		ends := n
		if w.stopped.Load() {
			ends++
			stops++
		}
		if handedBack[w.stressed] {
			ends++
		}
		require.Equal(t, 1, ends, "evicted %d times, stopped %v, handed back %v", n, w.stopped.Load(), handedBack[w.stressed])
		require.LessOrEqual(t, w.touched.Load(), int64(w.Last()))
		if n == 1 {
			evictions++
			require.Equal(t, int64(w.Last()), w.since.Load())
			// w.timeout is the shortest timeout that the thing has had.
			require.GreaterOrEqual(t, w.at.Load(), w.since.Load()+int64(w.timeout), "early")
			require.GreaterOrEqual(t, w.at.Load(), w.touched.Load()+int64(w.timeout), "a touch was ignored")
		}
	}
	require.EqualValues(t, stops, st.Stopped)
	require.EqualValues(t, evictions, st.Evicted)
	return int(count.Load()), evictions, st.Rearmed
}

func raise(v *atomic.Int64, n int64) {
	for {
		old := v.Load()
		if n <= old || v.CompareAndSwap(old, n) {
			return
		}
	}
}
