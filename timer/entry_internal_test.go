package timer

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timertest"
)

// After the second Reset of a Timer, Stop and Reset to a later time do not take the
// shard's lock.
func TestTimer_StopAndResetWithoutTheLock(t *testing.T) {
	s := New(WithShards(1))
	defer s.Close()
	others := held(s, 10*numStripes)
	x := others[0]
	sh := s.shards.firstShard
	sh.mu.Lock()
	for i := range 10 {
		require.True(t, x.Stop())
		require.False(t, x.Stop())
		require.False(t, x.Reset(time.Hour+time.Duration(i)*time.Second))
		require.True(t, x.Reset(2*time.Hour))
	}
	sh.mu.Unlock()
	require.Equal(t, len(others), s.Len())
	st := s.Stats()
	require.EqualValues(t, len(others)+10, st.Started)
	require.EqualValues(t, 10, st.Stopped)
	require.True(t, x.Reset(time.Minute)) // to an earlier time, which takes the lock
	require.True(t, others[1].Stop())
}

// A stopped Timer causes at most one wake-up. If nothing else is pending, it causes none.
func TestTimer_AStoppedOneWakesUpOnce(t *testing.T) {
	for _, alone := range []bool{false, true} {
		clk := timertest.NewClock(time.Unix(0, 0))
		s := New(WithClock(clk), WithExecutor(executor.NewInline()))
		runs := 0
		x := resettable(s, time.Second, func() { runs++ })
		x.Reset(time.Second)
		if !alone {
			resettable(s, time.Hour, func() {})
		}
		require.True(t, x.Stop())
		clk.Advance(discardEmptyDelay)
		before := s.Stats().Wakeups
		clk.Advance(time.Minute)
		st := s.Stats()
		if alone {
			require.Equal(t, before, st.Wakeups)
			_, set := clk.Next()
			require.False(t, set)
		} else {
			require.LessOrEqual(t, st.Wakeups, before+1)
			require.Equal(t, st.Wakeups, st.EmptyWakeups)
			require.Equal(t, 1, s.shards.firstShard.wheel.Len())
		}
		require.Zero(t, runs)
		require.EqualValues(t, 1, st.Stopped)
		require.Zero(t, st.Fired)
		require.Zero(t, st.Lateness.Count())
		s.Close()
	}
}

// A Timer is reset many times, each time to a later deadline. It fires once, at the last
// one. Its entry in the wheel moves only when the entry's earlier deadline passes.
func TestTimer_EntryFollows(t *testing.T) {
	clk := timertest.NewClock(time.Unix(0, 0))
	s := New(WithClock(clk), WithExecutor(executor.NewInline()))
	defer s.Close()
	for range 10 * numStripes {
		resettable(s, 24*time.Hour, func() {}).Reset(24 * time.Hour)
	}
	var at []time.Time
	x := resettable(s, time.Second, func() { at = append(at, clk.Now()) })
	x.Reset(time.Second)
	for range 10_000 {
		clk.Advance(time.Millisecond)
		require.True(t, x.Stop())
		require.False(t, x.Reset(time.Second))
	}
	st := s.Stats()
	require.LessOrEqual(t, st.Wakeups, uint64(12))
	require.Equal(t, st.Wakeups, st.Cascaded)
	require.Zero(t, st.EmptyWakeups)
	clk.Advance(time.Hour)
	require.Equal(t, []time.Time{time.Unix(11, 0)}, at)
	require.EqualValues(t, 1, s.Stats().Fired)
}

// A stopped Timer becomes garbage. Its entry leaves the wheel when other Timers are
// stopped, when a timer fires, or when the trimmer runs.
func TestTimer_AStoppedOneKeepsNothingAlive(t *testing.T) {
	for _, by := range []string{"stop", "expiry", "time"} {
		synctest.Test(t, func(t *testing.T) {
			s := New(WithShards(1))
			defer s.Close()
			others := held(s, 10*numStripes)
			if by == "expiry" {
				resettable(s, time.Second, func() {})
			}
			held := func() weak.Pointer[[1 << 10]byte] {
				big := new([1 << 10]byte)
				x := resettable(s, time.Minute, func() { big[0]++ })
				x.Reset(time.Minute)
				require.True(t, x.Stop())
				return weak.Make(big)
			}()
			runtime.GC()
			require.NotNil(t, held.Value())
			switch by {
			case "stop":
				for _, x := range others[:10] {
					require.True(t, x.Stop())
				}
			case "expiry":
				time.Sleep(2 * time.Second)
			case "time":
				time.Sleep(trimAfter + time.Second)
			}
			runtime.GC()
			runtime.GC()
			require.Nil(t, held.Value(), by)
		})
	}
}

// Many Timers are stopped one by one. Few of their entries stay in the wheel, and none at
// the end.
func TestTimer_ManyAreStopped(t *testing.T) {
	const n = 20_000
	s := New(WithShards(1))
	defer s.Close()
	sh := s.shards.firstShard
	timers := held(s, n)
	for i, x := range timers {
		before := sh.wheel.Len()
		done := make(chan bool)
		if i%8 == 0 {
			go func() { done <- x.Stop() }() // perhaps in another stripe
		} else {
			go func() { done <- true }()
			require.True(t, x.Stop())
		}
		require.True(t, <-done)
		left := n - i - 1
		require.LessOrEqual(t, sh.wheel.Len()-left, min(numStripes*16, left), i)
		require.LessOrEqual(t, before-sh.wheel.Len(), numStripes*16)
	}
	require.Zero(t, sh.wheel.Len())
	require.LessOrEqual(t, sh.wheel.Chunks(), 2)
	st := s.Stats()
	require.EqualValues(t, n, st.Stopped)
	require.EqualValues(t, n, st.Started)
	// All Timers can be started again.
	for _, x := range timers {
		require.False(t, x.Reset(time.Hour))
	}
	require.Equal(t, n, s.Len())
}

// Many goroutines stop Timers of one shard. Together they use all stripes, and each
// goroutine always uses the same one.
func TestStoppedTimers_AreSpreadOverGoroutines(t *testing.T) {
	l := new(stoppedTimers)
	const goroutines = 400
	var mu sync.Mutex
	uses := make(map[*stripe]int)
	var all, wg sync.WaitGroup
	all.Add(goroutines)
	for range goroutines {
		wg.Go(func() {
			own := l.callerStripe()
			if l.callerStripe() != own {
				t.Error("another stripe")
			}
			mu.Lock()
			uses[own]++
			mu.Unlock()
			all.Done()
			all.Wait() // so that each goroutine has its own stack
		})
	}
	wg.Wait()
	require.Len(t, uses, numStripes)
}

// Close hands back each pending Timer with its last deadline, and no stopped Timer.
func TestTimer_EntriesAtClose(t *testing.T) {
	clk := timertest.NewClock(time.Unix(0, 0))
	s := New(WithClock(clk), WithExecutor(executor.NewInline()))
	ran := 0
	start := func(d time.Duration) *Timer {
		x := resettable(s, time.Hour, func() { ran++ })
		x.Reset(d)
		return x
	}
	moved, stopped, revived, null := start(time.Second), start(time.Second), start(time.Second), resettable(s, 1, nil)
	null.Reset(4 * time.Second)
	moved.Reset(3 * time.Second)
	stopped.Stop()
	revived.Stop()
	revived.Reset(2 * time.Second)
	ps := closeAll(s)
	require.Len(t, ps, 3)
	for i, p := range ps {
		require.Equal(t, time.Unix(int64(i)+2, 0), p.Deadline)
		if p.Func != nil {
			p.Func()
		}
	}
	require.Equal(t, 2, ran)
	st := s.Stats()
	require.EqualValues(t, 3, st.HandedBack)
	require.EqualValues(t, 2, st.Stopped)
	require.EqualValues(t, 5, st.Started)
	require.Zero(t, st.Pending)
	for _, x := range []*Timer{moved, stopped, revived, null} {
		require.False(t, x.Stop())
		require.False(t, x.Reset(time.Second))
		require.True(t, x.Stop(), "it fell back")
	}
	require.EqualValues(t, 4, s.Stats().FellBack)
	require.Zero(t, s.Len())
}

// After Close has begun, every start of a Timer falls back, even on a shard that Close
// has not locked yet.
func TestTimer_StoppedWhileClosing(t *testing.T) {
	s := New()
	resettable(s, time.Hour, func() {})
	for _, x := range held(s, 10*numStripes)[:2] {
		require.True(t, x.Stop())
		s.closed.Store(true)
		require.False(t, x.Reset(2*time.Hour))
		require.True(t, x.Reset(time.Minute))
		require.True(t, x.Stop())
		s.closed.Store(false)
	}
	require.EqualValues(t, 4, s.Stats().FellBack)
	require.Equal(t, 10*numStripes-1, s.Len())
	require.Len(t, closeAll(s), 10*numStripes-1)
}

// Lateness counts from a Timer's last deadline, even if an earlier Reset has set another
// deadline in the same tick.
func TestTimer_EntryLateness(t *testing.T) {
	clk := timertest.NewClock(time.Unix(0, 0))
	s := New(WithClock(clk), WithExecutor(executor.NewInline()), WithTick(time.Second))
	defer s.Close()
	x := resettable(s, time.Hour, func() {})
	x.Reset(200 * time.Millisecond)
	x.Reset(700 * time.Millisecond)
	clk.Advance(time.Minute)
	require.Equal(t, 300*time.Millisecond, s.Stats().Lateness.Max())
}

// Pending returns each pending Timer with its last deadline, and no stopped Timer.
func TestTimer_ResetAmongThePending(t *testing.T) {
	clk := timertest.NewClock(time.Unix(0, 0))
	s := New(WithClock(clk), WithExecutor(executor.NewInline()))
	defer s.Close()
	timers := []*Timer{s.NewTimer(time.Hour)}
	timers[0].wasReset = true
	for range 2 * numStripes {
		timers = append(timers, resettable(s, time.Hour, func() {}))
	}
	for _, x := range timers {
		x.Reset(time.Second)
	}
	timers[0].Reset(time.Minute)
	require.True(t, timers[1].Stop())
	require.Equal(t, 2*numStripes+1, s.shards.firstShard.wheel.Len())
	ps := slices.Collect(s.Pending())
	require.Len(t, ps, 2*numStripes)
	for _, p := range ps {
		if p.Kind == KindChannel {
			require.Equal(t, time.Unix(60, 0), p.Due)
		} else {
			require.Equal(t, time.Unix(1, 0), p.Due)
		}
	}
}

// In a bubble, a stopped Timer does not fire, and a Timer that was reset fires once.
func TestTimer_EntriesInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		x, y := s.NewTimer(time.Second), s.NewTimer(time.Second)
		x.Reset(time.Second)
		y.Reset(time.Second)
		begin := time.Now()
		require.True(t, x.Stop())
		require.True(t, y.Stop())
		require.False(t, y.Reset(3*time.Second))
		require.Equal(t, 3*time.Second, (<-y.C).Sub(begin).Truncate(time.Second))
		require.Empty(t, x.C)
		require.NoError(t, s.Shutdown(t.Context()))
	})
}

// resettable is like AfterFunc, but an entry holds the *Timer after the first Reset.
func resettable(s *Scheduler, d time.Duration, f func()) *Timer {
	t := s.AfterFunc(d, f)
	t.wasReset = true
	return t
}

// held returns n Timers that are due in an hour. Entries in the wheel hold the *Timers.
func held(s *Scheduler, n int) []*Timer {
	timers := make([]*Timer, n)
	for i := range timers {
		timers[i] = resettable(s, time.Hour, func() {})
		timers[i].Reset(time.Hour)
	}
	return timers
}
