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
	for sh := range s.shards.existingShards() {
		made = append(made, sh.index)
	}
	return made
}

// stillClock makes the number of shards predictable. On the system's clock, a timer
// starts on a second shard if the poller has locked the first.
func stillClock() Option { return WithClock(timertest.NewClock(time.Unix(0, 0))) }

// A single timer makes only one shard, even if many are allowed.
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
	require.Equal(t, []int{0}, madeShards(s), "Len, Stats and Close must not make shards")
}

func TestShards_MadeByManyAtOnce(t *testing.T) {
	const goroutines, shards = 8, 130
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
					_, err := sh.startLocked(s.now(), time.Hour, 0, funcPayload(func() {}), tagFunc)
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

// Shards are made while Close runs and afterwards. Close hands back each timer that they
// accept.
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
					sh := s.shards.shardAt((i*7 + g) % shards)
					sh.mu.Lock()
					late := refused.Load() > 0
					_, err := sh.startLocked(s.now(), time.Hour, 0, funcPayload(func() {}), tagFunc)
					sh.unlock()
					if err != nil {
						refused.Inc()
						continue
					}
					accepted.Inc()
					require.False(t, late, "a start was accepted after another was refused")
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
			_, err := sh.startLocked(s.now(), time.Hour, 0, funcPayload(func() {}), tagFunc)
			sh.unlock()
			require.ErrorIs(t, err, ErrClosed)
		}
		_, err := s.Start(0, func() {})
		require.ErrorIs(t, err, ErrClosed)
		st := s.Stats()
		require.Equal(t, st.Started, st.HandedBack)
	}
}

// When many starts have found the first shard locked, starts use all shards.
func TestShards_StartsSpreadWhenTheFirstIsBusy(t *testing.T) {
	s := New(stillClock(), WithShards(8))
	start := func(n int) {
		for range n {
			_, err := s.Start(time.Hour, func() {})
			require.NoError(t, err)
		}
	}
	s.shards.firstShard.mu.Lock()
	start(spreadThreshold - 1)
	require.False(t, s.shards.usesAllShards.Load())
	require.Equal(t, []int{0, 1}, madeShards(s), "starts must not wait for the first shard")
	start(1)
	require.True(t, s.shards.usesAllShards.Load())
	start(1000)
	s.shards.firstShard.mu.Unlock()
	start(1000)
	require.Equal(t, spreadThreshold+2000, s.Len())
	require.Len(t, closeAll(s), spreadThreshold+2000)
}

// If one goroutine starts all timers, they use one shard until it is full, and then four
// others in turn.
func TestShards_OneStarter(t *testing.T) {
	s := New(stillClock(), WithShards(8))
	start := func(n int) {
		for range n {
			_, err := s.Start(time.Hour, func() {})
			require.NoError(t, err)
		}
	}
	start(fullShardLen)
	require.Equal(t, []int{0}, madeShards(s))
	start(fullShardLen / 2)
	require.Less(t, s.shards.firstShard.wheel.Len(), fullShardLen*5/4, "others take most of what follows")
	start(5 * fullShardLen / 2)
	longest := 0
	for _, i := range madeShards(s) {
		longest = max(longest, s.shards.shardAt(i).wheel.Len())
	}
	require.Less(t, longest, 2*fullShardLen, "a proc goes on when its shard is full")
	require.GreaterOrEqual(t, len(madeShards(s)), 4)
	require.Equal(t, 4*fullShardLen, s.Len())
	require.Len(t, closeAll(s), 4*fullShardLen)
}

// Starts stay on the first shard while it is rarely locked, even if the garbage collector
// empties the sync.Pool.
func TestShards_CollectionsDoNotMoveStarts(t *testing.T) {
	s := New(stillClock(), WithShards(512))
	defer s.Close()
	for range 50 {
		for range 20 {
			h, err := s.Start(time.Hour, func() {})
			require.NoError(t, err)
			require.True(t, h.Stop())
		}
		runtime.GC()
		runtime.GC()
	}
	require.Equal(t, []int{0}, madeShards(s))
}
