package timer

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"
)

// chunks returns the number of memory chunks that hold timers, in all shards of s.
func chunks(s *Scheduler) (n int) {
	for sh := range s.shards.existingShards() {
		sh.mu.Lock()
		n += sh.wheel.Chunks()
		sh.mu.Unlock()
	}
	return n
}

func startHandle(t *testing.T, sh *shard, d time.Duration, f func()) Handle {
	t.Helper()
	now := sh.s.now()
	sh.mu.Lock()
	id, err := sh.startLocked(now, d, sh.slackFor(d), funcPayload(f), tagFunc)
	h := Handle{sh, id}
	sh.unlock()
	require.NoError(t, err)
	return h
}

// Unused memory is given back. A Handle from before refers to no timer in the new memory.
func TestTrim_GivesBackWhatIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(WithShards(100))
		defer s.Close()
		var stale []Handle
		for round := range 3 {
			var fired atomic.Int32
			var live []Handle
			for _, sh := range allShards(s) {
				for _, d := range []time.Duration{time.Millisecond, time.Second, time.Minute} {
					live = append(live, startHandle(t, sh, d, func() { fired.Inc() }))
				}
			}
			for _, h := range stale {
				require.False(t, h.Stop(), "round %d", round)
				require.False(t, h.Move(time.Hour), "round %d", round)
			}
			require.Equal(t, 100, chunks(s))
			time.Sleep(10 * time.Second)
			require.Equal(t, 100, chunks(s), "a timer is pending on each")
			for i := 2; i < len(live); i += 3 {
				require.True(t, live[i].Stop())
			}
			time.Sleep(2*trimAfter + time.Second)
			require.Zero(t, chunks(s))
			require.EqualValues(t, 200, fired.Load())
			require.False(t, s.trimmer.isAlarmSet.Load(), "there is nothing left to do")
			stale = append(stale, live...)
		}
		wakeups := s.Stats().Wakeups
		time.Sleep(time.Hour)
		require.Equal(t, wakeups, s.Stats().Wakeups)
		st := s.Stats()
		require.Equal(t, st.Started, st.Fired+st.Stopped)
	})
}

// A shard with a timer keeps its memory, and the other shards give theirs back.
func TestTrim_OneShardIsInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(WithShards(8))
		defer s.Close()
		for _, sh := range allShards(s) {
			startHandle(t, sh, time.Millisecond, func() {})
		}
		h := startHandle(t, s.shards.shardAt(3), time.Hour, func() {})
		time.Sleep(2*trimAfter + time.Second)
		require.Equal(t, 1, chunks(s))
		require.Equal(t, 1, s.shards.shardAt(3).wheel.Chunks())
		require.True(t, h.Stop())
		time.Sleep(2*trimAfter + time.Second)
		require.Zero(t, chunks(s))
	})
}

// The memory of shards whose timers were all stopped is given back, although a timer of
// another shard is due before their buckets.
func TestTrim_BehindAnEarlierTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(WithShards(64))
		defer s.Close()
		startHandle(t, s.shards.shardAt(0), 19*time.Hour, func() {})
		for range 3 {
			var hs []Handle
			for _, sh := range allShards(s) {
				for _, d := range []time.Duration{19*time.Hour + time.Minute, 20 * time.Hour, 24 * time.Hour} {
					hs = append(hs, startHandle(t, sh, d, func() {}))
				}
			}
			require.Equal(t, 64, chunks(s))
			for _, h := range hs {
				require.True(t, h.Stop())
			}
			time.Sleep(2*trimAfter + time.Second)
			require.Equal(t, 1, chunks(s))
			// Only the buckets of the first shard's timer stay in the queue.
			require.LessOrEqual(t, s.queue.Len(), 4)
			require.False(t, s.trimmer.isAlarmSet.Load(), "there is nothing left to do")
		}
		var fired atomic.Int32
		for _, sh := range allShards(s) {
			startHandle(t, sh, 20*time.Hour, func() { fired.Inc() })
		}
		time.Sleep(20*time.Hour + time.Second)
		require.EqualValues(t, 64, fired.Load())
	})
}

// Each shard has two timers: one is stopped, and the other fires. Then all shards give
// back their memory, except the first, which has a third timer.
func TestTrim_BehindAnEarlierTimerWhenTheLastHasFired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(WithShards(8))
		defer s.Close()
		startHandle(t, s.shards.shardAt(0), 19*time.Hour, func() {})
		for _, sh := range allShards(s) {
			h := startHandle(t, sh, 20*time.Hour, func() {})
			startHandle(t, sh, time.Minute, func() {})
			require.True(t, h.Stop())
		}
		time.Sleep(time.Minute + 2*trimAfter + time.Second)
		require.Equal(t, 1, chunks(s))
	})
}

// Timers that come and go one at a time reuse the same memory.
func TestTrim_NotBetweenTimersThatComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		defer s.Close()
		var first bool
		for range 40 {
			for _, d := range []time.Duration{time.Millisecond, time.Hour} {
				if first {
					require.Equal(t, 1, chunks(s), "a second after the last one has gone")
				}
				first = true
				h, err := s.Start(d, func() {})
				require.NoError(t, err)
				time.Sleep(10 * time.Millisecond)
				h.Stop()
				time.Sleep(time.Second)
			}
		}
		allocs := testing.AllocsPerRun(20, func() {
			h, err := s.Start(time.Hour, func() {})
			require.NoError(t, err)
			h.Stop()
		})
		require.Zero(t, allocs)
		time.Sleep(2*trimAfter + time.Second)
		require.Zero(t, chunks(s))
	})
}

// The trimmer's alarm goes off while the Scheduler is closed. It is not set again.
func TestTrim_ClosedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		startHandle(t, s.shards.shardAt(0), time.Millisecond, func() {})
		time.Sleep(10 * time.Millisecond)
		require.True(t, s.trimmer.isAlarmSet.Load())
		s.Close()
		s.trimmer.onAlarm() // as if the alarm had just gone off
		s.trimmer.scheduleTrim()
		require.False(t, s.trimmer.isAlarmSet.Load())
	})
}

// Memory is given back again and again while goroutines use timers. No timer is lost, and
// no Handle affects another timer.
func TestTrim_Stress(t *testing.T) {
	s := New(WithShards(4), WithTick(10*time.Microsecond))
	end := make(chan struct{})
	var trimming, wg sync.WaitGroup
	trimmed := 0
	trimming.Go(func() {
		for {
			select {
			case <-end:
				return
			default:
			}
			before := chunks(s)
			s.trimmer.mu.Lock()
			s.trimmer.trimShardsLocked()
			s.trimmer.mu.Unlock()
			if chunks(s) < before {
				trimmed++
			}
			runtime.Gosched()
		}
	})
	var stopped, fired atomic.Int64
	const goroutines, rounds = 4, 300
	for g := range goroutines {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(7, uint64(g)))
			sh := s.shards.shardAt(g)
			var stale []Handle
			for range rounds {
				far := startHandle(t, sh, time.Duration(1+rng.IntN(48))*time.Hour, func() { t.Error("early") })
				hs := make([]Handle, 1+rng.IntN(20))
				var ran sync.WaitGroup
				for i := range hs {
					ran.Add(1)
					hs[i] = startHandle(t, sh, time.Duration(rng.IntN(200))*time.Microsecond, func() { fired.Inc(); ran.Done() })
				}
				for _, h := range stale {
					if h.Stop() || h.Move(time.Hour) {
						t.Error("a stale Handle has touched a timer")
					}
				}
				if far.Stop() {
					stopped.Inc()
				}
				for _, h := range hs {
					if rng.IntN(2) == 0 && h.Stop() {
						stopped.Inc()
						ran.Done()
					}
				}
				ran.Wait()
				stale = append(stale, hs...)
				if len(stale) > 100 {
					stale = stale[len(stale)-100:]
				}
				time.Sleep(50 * time.Microsecond)
			}
		})
	}
	wg.Wait()
	close(end)
	trimming.Wait()
	st := s.Stats()
	require.EqualValues(t, st.Fired, fired.Load())
	require.EqualValues(t, st.Stopped, stopped.Load())
	require.Equal(t, st.Started, st.Fired+st.Stopped)
	require.Zero(t, st.Pending)
	require.Greater(t, trimmed, 10)
	t.Logf("memory was given back %d times", trimmed)
	s.Close()
}
