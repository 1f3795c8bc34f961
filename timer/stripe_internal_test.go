package timer

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Goroutines that stop and reset Timers of one shard at once use all of its stripes, each
// one of them.
func TestStripes_AreSpreadOverGoroutines(t *testing.T) {
	s := New(WithShards(1))
	defer s.Close()
	shared := &s.shards.first.shared
	require.Same(t, &shared.first, shared.own())
	shared.stripeLocked(4)
	require.Len(t, shared.others(), manyStripes)
	const goroutines = 400
	var mu sync.Mutex
	uses := make(map[*stripe]int)
	var all, wg sync.WaitGroup
	all.Add(goroutines)
	for range goroutines {
		wg.Go(func() {
			own := shared.own()
			if shared.own() != own {
				t.Error("another stripe")
			}
			mu.Lock()
			uses[own]++
			mu.Unlock()
			all.Done()
			all.Wait() // so that each has a stack of its own
		})
	}
	wg.Wait()
	require.Len(t, uses, manyStripes)
	require.Zero(t, uses[&shared.first])
}

// A Timer that one goroutine stops and another resets is counted in two stripes, of which
// neither has to be right by itself.
func TestStripes_CountTogether(t *testing.T) {
	const n = 4 * stripedFrom
	s, timers := striped(t, n)
	sh := s.shards.first
	const hands = 8
	do := func(f func(x *Timer) bool) {
		var wg sync.WaitGroup
		for g := range hands {
			wg.Go(func() {
				for i := g; i < n/8; i += hands { // too few to be swept
					if !f(timers[i]) {
						t.Error("not as the one before has left it")
					}
				}
			})
		}
		wg.Wait()
	}
	for range 50 {
		do((*Timer).Stop)
		require.Equal(t, n-n/8, s.Len())
		do(func(x *Timer) bool { return !x.Reset(2 * time.Hour) })
		require.Equal(t, n, s.Len())
	}
	require.EqualValues(t, 50*n/8, sh.shared.revived())
	st := s.Stats()
	require.EqualValues(t, 50*n/8, st.Stopped)
	require.EqualValues(t, n+50*n/8, st.Started)
	for i, x := range timers {
		stopped := make(chan bool, 1)
		if i%8 == 0 {
			go func() { stopped <- x.Stop() }()
		} else {
			stopped <- x.Stop()
		}
		require.True(t, <-stopped)
		require.LessOrEqual(t, sh.deadLocked(), max(sweepLeast, sh.wheel.Len()/4+batchSize), i)
		require.Equal(t, n-i-1, s.Len())
	}
	require.Zero(t, sh.wheel.Len())
}

// Where a stripe's count may grow by many before all are counted, the dead are swept as
// fast as others die, and all are gone with the last.
func TestStripes_VeryManyDeadAreSwept(t *testing.T) {
	const n = 300_000
	s, timers := striped(t, n)
	sh := s.shards.first
	require.Greater(t, sh.shared.step.Load(), int64(batchSize/2))
	for i, x := range timers {
		require.True(t, x.Stop())
		if i%1000 == 0 {
			require.LessOrEqual(t, sh.deadLocked(), sh.wheel.Len()/4+batchSize)
		}
	}
	require.Zero(t, sh.wheel.Len())
}

// More have come and gone than fit into 32 bits.
func TestStripes_VeryManyHaveGone(t *testing.T) {
	const before = 1 << 33
	s, timers := striped(t, 4*stripedFrom)
	sh := s.shards.first
	sh.mu.Lock()
	sh.shared.first.stopped.Add(before)
	sh.entries.gone += before
	sh.markLocked()
	sh.mu.Unlock()
	require.Greater(t, sh.shared.mark.Load(), int64(before))
	require.True(t, timers[0].Stop())
	require.Equal(t, len(timers)-1, s.Len())
	require.Equal(t, len(timers), sh.wheel.Len(), "one is no reason to sweep")
}

// striped returns a Scheduler with stripes, and n of its Timers, which have entries.
func striped(t *testing.T, n int) (*Scheduler, []*Timer) {
	procs := runtime.GOMAXPROCS(4)
	t.Cleanup(func() { runtime.GOMAXPROCS(procs) })
	s := New(WithShards(1))
	t.Cleanup(func() { s.Close() })
	timers := make([]*Timer, n)
	for i := range timers {
		timers[i] = resettable(s, time.Hour, func() {})
		timers[i].Reset(time.Hour)
	}
	require.NotEmpty(t, s.shards.first.shared.others())
	return s, timers
}
