package timer

import (
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/timertest"
)

// Stop and a later Reset of a Timer that was reset before take no lock of the shard's.
func TestTimer_StopAndResetWithoutTheLock(t *testing.T) {
	s := New(WithShards(1))
	defer s.Close()
	other := resettable(s, time.Hour, func() {})
	x := resettable(s, time.Hour, func() {})
	require.True(t, x.Reset(time.Hour))
	sh := s.shards.first
	sh.mu.Lock()
	for i := range 10 {
		require.True(t, x.Stop())
		require.False(t, x.Stop())
		require.False(t, x.Reset(time.Hour+time.Duration(i)*time.Second))
		require.True(t, x.Reset(2*time.Hour))
	}
	sh.mu.Unlock()
	require.Equal(t, 2, s.Len())
	st := s.Stats()
	require.EqualValues(t, 12, st.Started)
	require.EqualValues(t, 10, st.Stopped)
	require.True(t, x.Reset(time.Minute)) // earlier: with the lock
	require.True(t, other.Stop())
}

// What a dead entry is due for is a wake-up at most, and none if nothing else is pending.
func TestTimer_DeadEntriesWakeUpOnce(t *testing.T) {
	for _, alone := range []bool{false, true} {
		clk := timertest.NewClock(time.Unix(0, 0))
		s := New(WithClock(clk))
		runs := 0
		x := resettable(s, time.Second, func() { runs++ })
		x.Reset(time.Second)
		if !alone {
			resettable(s, time.Hour, func() {})
		}
		require.True(t, x.Stop())
		clk.Advance(lookAfter)
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
			require.Equal(t, 1, s.shards.first.wheel.Len())
		}
		require.Zero(t, runs)
		require.EqualValues(t, 1, st.Stopped)
		require.Zero(t, st.Fired)
		require.Zero(t, st.Lateness.Count())
		s.Close()
	}
}

// A Timer that is reset again and again, later each time, follows when its entry falls
// due, and fires once, at its deadline.
func TestTimer_EntryFollows(t *testing.T) {
	clk := timertest.NewClock(time.Unix(0, 0))
	s := New(WithClock(clk))
	defer s.Close()
	resettable(s, 24*time.Hour, func() {})
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

// A stopped Timer that was dropped keeps nothing alive, while its entry is in the wheel
// still: from the next Stop on, or when something expires.
func TestTimer_DeadEntryKeepsNothingAlive(t *testing.T) {
	for _, by := range []string{"stop", "expiry"} {
		t.Run(by, func(t *testing.T) {
			clk := timertest.NewClock(time.Unix(0, 0))
			s := New(WithClock(clk))
			defer s.Close()
			other := resettable(s, time.Hour, func() {})
			other.Reset(time.Hour)
			resettable(s, time.Second, func() {})
			held := func() weak.Pointer[[1 << 10]byte] {
				big := new([1 << 10]byte)
				x := resettable(s, time.Minute, func() { big[0]++ })
				x.Reset(time.Minute)
				require.True(t, x.Stop())
				return weak.Make(big)
			}()
			if by == "stop" {
				require.True(t, other.Stop())
			} else {
				clk.Advance(time.Second)
			}
			runtime.GC()
			runtime.GC()
			require.Nil(t, held.Value())
			require.Equal(t, map[string]int{"stop": 3, "expiry": 2}[by], s.shards.first.wheel.Len())
			clk.Advance(2 * time.Minute)
			require.Zero(t, s.shards.first.deadLocked())
		})
	}
}

// The memory of very many that were stopped falls while the others stay, by no more than
// a batch in a hold of the lock; and all of it goes with the last.
func TestTimer_ManyDeadAreSwept(t *testing.T) {
	const n = 20_000
	s := New(WithShards(1))
	defer s.Close()
	sh := s.shards.first
	timers := make([]*Timer, n)
	for i := range timers {
		timers[i] = resettable(s, time.Hour, func() {})
		timers[i].Reset(time.Hour)
	}
	full := sh.wheel.Chunks()
	for i, x := range timers {
		before := sh.wheel.Len()
		require.True(t, x.Stop())
		require.Equal(t, n-i-1, s.Len())
		require.LessOrEqual(t, sh.deadLocked(), max(sweepLeast, n/4), i)
		if i < n-1 {
			require.LessOrEqual(t, before-sh.wheel.Len(), max(batchSize, sweepLeast))
		}
		switch i {
		case n * 9 / 10:
			require.Less(t, sh.wheel.Chunks(), full/2)
		case n - 1:
			require.Zero(t, sh.wheel.Len())
			require.LessOrEqual(t, sh.wheel.Chunks(), 2)
		}
	}
	st := s.Stats()
	require.EqualValues(t, n, st.Stopped)
	require.EqualValues(t, n, st.Started)
	// All of them start again, some after their entries have gone.
	for _, x := range timers {
		require.False(t, x.Reset(time.Hour))
	}
	require.Equal(t, n, s.Len())
}

// Timers without entries leave: the dead ones are all that is left, and go too.
func TestTimer_DeadEntriesGoWithTheLastOther(t *testing.T) {
	s := New(WithShards(1))
	defer s.Close()
	h, err := s.Start(time.Hour, func() {})
	require.NoError(t, err)
	x, y := resettable(s, time.Hour, func() {}), s.NewTimer(time.Hour)
	y.moved = true
	x.Reset(time.Hour)
	y.Reset(time.Hour)
	require.True(t, x.Stop())
	require.True(t, y.Stop())
	require.Equal(t, 3, s.shards.first.wheel.Len())
	require.True(t, h.Stop())
	require.Zero(t, s.shards.first.wheel.Len())
	require.False(t, x.Stop())
	require.False(t, y.Reset(time.Hour))
	require.True(t, y.Stop())
	require.Zero(t, s.shards.first.wheel.Len())
}

// Close hands back what is pending by its last deadline, and not what was stopped.
func TestTimer_EntriesAtClose(t *testing.T) {
	clk := timertest.NewClock(time.Unix(0, 0))
	s := New(WithClock(clk))
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

// From the moment at which Close begins all that is started falls back: also a Timer whose
// entry is in a shard to which it has yet to come.
func TestTimer_DeadEntryWhileClosing(t *testing.T) {
	s := New()
	resettable(s, time.Hour, func() {})
	for range 2 {
		x := resettable(s, time.Hour, func() {})
		x.Reset(time.Hour)
		require.True(t, x.Stop())
		s.closed.Store(true)
		require.False(t, x.Reset(2*time.Hour))
		require.True(t, x.Reset(time.Minute))
		require.True(t, x.Stop())
		s.closed.Store(false)
	}
	require.EqualValues(t, 4, s.Stats().FellBack)
	require.Equal(t, 1, s.Len())
	require.Len(t, closeAll(s), 1)
}

// Lateness counts from the last deadline, also if that is in the tick of the one before.
func TestTimer_EntryLateness(t *testing.T) {
	clk := timertest.NewClock(time.Unix(0, 0))
	s := New(WithClock(clk), WithTick(time.Second))
	defer s.Close()
	x := resettable(s, time.Hour, func() {})
	x.Reset(200 * time.Millisecond)
	x.Reset(700 * time.Millisecond)
	clk.Advance(time.Minute)
	require.Equal(t, 300*time.Millisecond, s.Stats().Lateness.Max())
}

// Who looks at what is pending sees a Timer by its last deadline, and no dead one.
func TestTimer_EntriesAmongThePending(t *testing.T) {
	clk := timertest.NewClock(time.Unix(0, 0))
	s := New(WithClock(clk))
	defer s.Close()
	moved, dead, cut := s.NewTimer(time.Hour), resettable(s, time.Hour, func() {}), resettable(s, time.Hour, func() {})
	for _, x := range []*Timer{moved, dead, cut} {
		x.Reset(time.Second)
	}
	moved.Reset(time.Minute)
	cut.Stop()
	dead.Stop()
	require.Equal(t, 3, s.shards.first.wheel.Len())
	check := func(ps []PendingTimer) {
		require.Len(t, ps, 1)
		require.Equal(t, KindChannel, ps[0].Kind)
		require.Equal(t, time.Unix(60, 0), ps[0].Due)
	}
	check(slices.Collect(s.Pending()))
}

// In a bubble, too, a stopped Timer stays silent, and one that was reset fires once.
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

// It leaves its place and itself, while others stay.
func TestTimer_BytesOfADeadEntry(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("the figure is that of 64 bits")
	}
	const others, dead = 200_000, 40_000
	s := New()
	defer s.Close()
	f := func() {}
	for range others {
		_, err := s.Start(time.Hour, f)
		require.NoError(t, err)
	}
	used := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := used()
	for range dead {
		x := resettable(s, time.Hour, f)
		x.Reset(time.Hour)
		require.True(t, x.Stop())
	}
	each := float64(used()-before) / dead
	t.Logf("%.1f bytes", each)
	require.InDelta(t, 65, each, 10)
	runtime.KeepAlive(s)
}

// resettable is AfterFunc for a Timer that the next Reset gives an entry.
func resettable(s *Scheduler, d time.Duration, f func()) *Timer {
	t := s.AfterFunc(d, f)
	t.moved = true
	return t
}
