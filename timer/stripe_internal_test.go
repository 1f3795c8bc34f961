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
	require.Len(t, shared.others(), maxStripes)
	const goroutines = 400
	var mu sync.Mutex
	uses := make(map[*stripe]int)
	var all, wg sync.WaitGroup
	all.Add(goroutines)
	for range goroutines {
		wg.Go(func() {
			own := shared.own()
			mu.Lock()
			uses[own]++
			mu.Unlock()
			all.Done()
			all.Wait() // so that each has a stack of its own
			if shared.own() != own {
				t.Error("another stripe")
			}
		})
	}
	wg.Wait()
	require.Len(t, uses, maxStripes)
	require.Zero(t, uses[&shared.first])
}

// A Timer that one goroutine stops and another resets is counted in two stripes, of which
// neither has to be right by itself.
func TestStripes_CountTogether(t *testing.T) {
	const n = 4 * stripedFrom
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	s := New(WithShards(1))
	defer s.Close()
	timers := make([]*Timer, n)
	for i := range timers {
		timers[i] = s.AfterFunc(time.Hour, func() {})
		timers[i].Reset(time.Hour)
	}
	sh := s.shards.first
	require.NotEmpty(t, sh.shared.others())
	const hands = 8
	do := func(f func(x *Timer) bool) {
		var wg sync.WaitGroup
		for g := range hands {
			wg.Go(func() {
				for i := g; i < n; i += hands {
					if !f(timers[i]) {
						t.Error("not as the one before has left it")
					}
				}
			})
		}
		wg.Wait()
	}
	for range 20 {
		// Those of one stripe stop 500 each, which is before they are many; the others
		// revive them.
		do((*Timer).Stop)
		require.Zero(t, s.Len())
		do(func(x *Timer) bool { return !x.Reset(2 * time.Hour) })
		require.Equal(t, n, s.Len())
	}
	st := s.Stats()
	require.EqualValues(t, 20*n, st.Stopped)
	require.EqualValues(t, 21*n, st.Started)
	// However they are spread, no more than a quarter stays behind.
	for i, x := range timers {
		var wg sync.WaitGroup
		if i%8 == 0 {
			wg.Go(func() { require.True(t, x.Stop()) })
			wg.Wait()
		} else {
			require.True(t, x.Stop())
		}
		require.LessOrEqual(t, sh.deadLocked(), max(sweepLeast, sh.wheel.Len()/4+batchSize), i)
		require.Equal(t, n-i-1, s.Len())
	}
	require.Zero(t, sh.wheel.Len())
}
