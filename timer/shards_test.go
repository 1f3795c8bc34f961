package timer

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/timertest"
)

// madeShards returns the indices of the shards that s has made.
func madeShards(s *Scheduler) (made []int) {
	for sh := range s.shards.made() {
		made = append(made, sh.index)
	}
	return made
}

// stillClock is for tests that count shards: by the system's clock the poller looks at
// the first shard now and then, and a start that finds it so goes to the next.
func stillClock() Option { return WithClock(timertest.NewClock(time.Unix(0, 0))) }

// A timer needs one shard, however many there could be.
func TestShards_AreMadeOnFirstUse(t *testing.T) {
	s := New(stillClock(), WithShards(512))
	defer s.Close()
	for range 1000 {
		_, err := s.Start(time.Hour, func() {})
		require.NoError(t, err)
		s.NewTimer(time.Hour).Stop()
	}
	require.Equal(t, []int{0}, madeShards(s))
	require.Equal(t, 1000, s.Len())
	require.Equal(t, 1000, s.Stats().Pending)
	require.Len(t, closeAll(s), 1000)
	require.Equal(t, []int{0}, madeShards(s), "none is made to be looked at")
}

func TestShards_MadeByManyAtOnce(t *testing.T) {
	const goroutines, shards = 8, 130 // not a whole number of groups
	for range 20 {
		s := New(WithShards(shards))
		var begin, done sync.WaitGroup
		begin.Add(1)
		got := make([][]*shard, goroutines)
		for g := range goroutines {
			done.Go(func() {
				begin.Wait()
				got[g] = allShards(s)
				for _, sh := range got[g] {
					sh.mu.Lock()
					_, err := sh.startLocked(s.now(), time.Hour, funcPayload(func() {}), tagFunc)
					sh.unlock()
					require.NoError(t, err)
				}
			})
		}
		begin.Done()
		done.Wait()
		for g := range goroutines {
			require.True(t, slices.Equal(got[0], got[g]), "all have the same shards")
		}
		require.Equal(t, goroutines*shards, s.Len())
		require.Len(t, closeAll(s), goroutines*shards)
	}
}

// A shard that is made beside Close, or after it, takes no timer that Close does not
// hand back.
func TestShards_MadeBesideClose(t *testing.T) {
	const goroutines, shards = 4, 64
	for range 100 {
		s := New(WithShards(shards))
		var refused, accepted atomic.Int64
		var begin, done sync.WaitGroup
		begin.Add(1)
		for g := range goroutines {
			done.Go(func() {
				begin.Wait()
				for i := range shards {
					sh := s.shards.at((i*7 + g) % shards)
					sh.mu.Lock()
					late := refused.Load() > 0
					_, err := sh.startLocked(s.now(), time.Hour, funcPayload(func() {}), tagFunc)
					sh.unlock()
					if err != nil {
						refused.Inc()
						continue
					}
					accepted.Inc()
					require.False(t, late, "another was refused before")
				}
			})
		}
		begin.Done()
		runtime.Gosched()
		handedBack := len(closeAll(s))
		done.Wait()
		handedBack += len(closeAll(s))
		require.EqualValues(t, accepted.Load(), handedBack)
		require.EqualValues(t, goroutines*shards, accepted.Load()+refused.Load())
		require.Zero(t, s.Len())
		for _, sh := range allShards(s) {
			sh.mu.Lock()
			_, err := sh.startLocked(s.now(), time.Hour, funcPayload(func() {}), tagFunc)
			sh.unlock()
			require.ErrorIs(t, err, ErrClosed)
		}
		_, err := s.Start(0, func() {})
		require.ErrorIs(t, err, ErrClosed)
		st := s.Stats()
		require.Equal(t, st.Started, st.HandedBack)
	}
}

// Starts spread when many of them within a short time find their shard busy.
func TestShards_StartsSpreadWhenTheFirstIsBusy(t *testing.T) {
	clk := timertest.NewClock(time.Unix(0, 0))
	s := New(WithClock(clk), WithShards(512))
	start := func(n int) {
		for range n {
			_, err := s.Start(time.Hour, func() {})
			require.NoError(t, err)
		}
	}
	s.shards.first.mu.Lock()
	for range 3 {
		start(busyStarts - 1)
		require.False(t, s.shards.spread.Load())
		clk.Advance(busyTime + 1)
	}
	require.Equal(t, []int{0, 1}, madeShards(s), "they do not wait for it")
	start(busyStarts)
	require.True(t, s.shards.spread.Load())
	start(1000)
	s.shards.first.mu.Unlock()
	start(1000)
	require.LessOrEqual(t, len(madeShards(s)), s.shards.homes)
	require.Equal(t, 4*busyStarts-3+2000, s.Len())
	require.Len(t, closeAll(s), 4*busyStarts-3+2000)
}

// What collections take from the pool of tokens comes back: starts do not wander over
// the shards.
func TestShards_CollectionsDoNotMoveStarts(t *testing.T) {
	for _, spread := range []bool{false, true} {
		s := New(stillClock(), WithShards(512))
		s.shards.spread.Store(spread)
		goroutines := 1 // never more than one start at a time
		if spread {
			goroutines = 4
		}
		var wg sync.WaitGroup
		for range goroutines {
			wg.Go(func() {
				for range 50 {
					for range 20 {
						h, err := s.Start(time.Hour, func() {})
						require.NoError(t, err)
						require.True(t, h.Stop())
					}
					runtime.GC()
					runtime.GC()
				}
			})
		}
		wg.Wait()
		if spread {
			require.LessOrEqual(t, len(madeShards(s)), s.shards.homes)
		} else {
			require.Equal(t, []int{0}, madeShards(s))
		}
		s.Close()
	}
}

// A proc that has lost its token to two collections gets the home back that it had.
func TestShards_ALostTokenIsReplacedByItsLike(t *testing.T) {
	s := New(WithShards(512))
	defer s.Close()
	tokens := func() (ts []*token) {
		for range s.shards.homes {
			ts = append(ts, s.shards.newToken())
		}
		return ts
	}
	homes := func(ts []*token) (is []int) {
		for _, tk := range ts {
			is = append(is, tk.sh.index)
		}
		return is
	}
	all := make([]int, s.shards.homes)
	for i := range all {
		all[i] = i
	}
	ts := tokens()
	require.Equal(t, all, homes(ts))
	more := []*token{s.shards.newToken(), s.shards.newToken()}
	require.Equal(t, all[:2], homes(more), "with more tokens than homes they share")
	kept := ts[1:]
	ts[0], more[0] = nil, nil
	runtime.GC()
	require.Equal(t, 0, s.shards.newToken().sh.index)
	runtime.KeepAlive(kept)
	runtime.KeepAlive(more)
	clear(ts)
	clear(more)
	runtime.GC()
	require.Equal(t, all, homes(tokens()))
}
