package timer

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// withDefault replaces defaultScheduler by f during a test.
func withDefault(t *testing.T, f func() *Scheduler) {
	before := defaultScheduler
	defaultScheduler = sync.OnceValue(f)
	t.Cleanup(func() { defaultScheduler = before })
}

func withoutDefault(t *testing.T) {
	withDefault(t, func() *Scheduler { panic("the default Scheduler was made") })
}

// In a bubble the package-level functions follow the bubble's clock to the nanosecond.
func TestDefault_InsideABubble(t *testing.T) {
	withoutDefault(t)
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		since := func() time.Duration { return time.Since(begin) }

		Sleep(time.Hour)
		require.Equal(t, time.Hour, since())
		Sleep(-1)
		require.Equal(t, begin.Add(2*time.Hour), <-After(time.Hour))
		require.Equal(t, begin.Add(2*time.Hour), <-After(0))

		tm := NewTimer(time.Hour)
		require.Equal(t, begin.Add(3*time.Hour), <-tm.C)
		require.False(t, tm.Stop())
		require.False(t, tm.Reset(time.Minute))
		require.True(t, tm.Reset(time.Hour))
		time.Sleep(2 * time.Hour)
		require.True(t, tm.Stop(), "the value had not been received")
		select {
		case <-tm.C:
			t.Error("received after Stop")
		default:
		}

		ran := make(chan time.Duration, 2)
		f := AfterFunc(time.Hour, func() { ran <- since() })
		require.Nil(t, f.C)
		require.Equal(t, 6*time.Hour, <-ran)
		require.False(t, f.Reset(time.Minute))
		require.True(t, f.Reset(time.Hour))
		require.Equal(t, 7*time.Hour, <-ran)
		require.False(t, f.Stop())

		tk := NewTicker(time.Hour)
		for i := range 3 {
			require.Equal(t, begin.Add(time.Duration(8+i)*time.Hour), <-tk.C)
		}
		tk.Reset(time.Minute)
		require.Equal(t, begin.Add(10*time.Hour+time.Minute), <-tk.C)
		require.PanicsWithValue(t, "timer: non-positive interval for Ticker.Reset", func() { tk.Reset(0) })
		tk.Stop()
		time.Sleep(time.Hour)
		select {
		case <-tk.C:
			t.Error("ticked after Stop")
		default:
		}
		tk.Reset(time.Hour)
		now := time.Now()
		require.Equal(t, now.Add(time.Hour), <-tk.C)
		tk.Stop()

		c := Tick(time.Hour)
		require.Equal(t, now.Add(2*time.Hour), <-c)
		require.Nil(t, Tick(0))
		require.PanicsWithValue(t, "timer: non-positive interval for NewTicker", func() { NewTicker(-1) })
	})
}

// After and Tick use package time outside a bubble too: their timers cannot be stopped,
// and become garbage with their channels.
func TestDefault_AfterAndTickAreGarbageWhenTheirChannelsAre(t *testing.T) {
	before := heapInUse()
	c := make(chan int, 1)
	for i := range 1_000_000 {
		c <- i
		select {
		case <-c:
		case <-After(30 * time.Second):
			t.Fatal("it took half a minute")
		}
		if i%10 == 0 {
			Tick(30 * time.Second)
		}
	}
	after := heapInUse()
	require.Less(t, after-before, 8e6)
	require.Nil(t, Tick(0))
}

// heapInUse returns the number of reachable bytes.
func heapInUse() float64 {
	var m runtime.MemStats
	for range 3 { // a cycle sweeps what the one before has freed
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// Outside a bubble the functions use one default Scheduler.
func TestDefault_OutsideABubble(t *testing.T) {
	withDefault(t, func() *Scheduler { return New() })
	s := Default()
	defer s.Close()
	require.Same(t, s, Default())

	tm := NewTimer(time.Hour)
	require.Equal(t, 1, s.Len())
	require.True(t, tm.Stop())
	f := AfterFunc(time.Hour, func() {})
	require.True(t, f.Stop())
	tk := NewTicker(time.Hour)
	require.Equal(t, 1, s.Len())
	tk.Stop()
	begin := time.Now()
	Sleep(time.Millisecond)
	<-After(time.Millisecond)
	c := Tick(time.Millisecond)
	<-c
	<-c
	require.GreaterOrEqual(t, time.Since(begin), 4*time.Millisecond)
	require.EqualValues(t, 4, s.Stats().Started, "After and Tick are package time's")
	ran := make(chan struct{})
	AfterFunc(0, func() { close(ran) })
	<-ran
	Sleep(0)

	st := s.Stats()
	require.EqualValues(t, 5, st.Started)
	require.EqualValues(t, 3, st.Stopped)
	require.Zero(t, st.Rejected)
}

// A Scheduler that is made in a bubble fires at the tick. After Close no goroutine
// remains: synctest.Test checks that.
func TestScheduler_InABubble(t *testing.T) {
	withoutDefault(t)
	for name, end := range map[string]func(*Scheduler) error{
		"Close":    func(s *Scheduler) error { s.Close(); return nil },
		"Shutdown": func(s *Scheduler) error { return s.Shutdown(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(WithTick(time.Millisecond))
				begin := time.Now()
				for _, d := range []time.Duration{1, time.Millisecond, 1234567 * time.Nanosecond, time.Hour, 1000*time.Hour + 1} {
					want := (d + time.Millisecond - 1).Truncate(time.Millisecond)
					start := time.Now()
					done := make(chan time.Duration, 1)
					s.AfterFunc(d, func() { done <- time.Since(start) })
					require.Equal(t, want, <-done, "AfterFunc(%v)", d)
				}
				tk := s.NewTicker(time.Minute)
				start := time.Now()
				for i := range 100 {
					require.Equal(t, start.Add(time.Duration(i+1)*time.Minute), <-tk.C)
				}
				time.Sleep(time.Minute)
				require.Positive(t, time.Since(begin))
				require.NoError(t, end(s))
				require.Zero(t, s.Len())
				time.Sleep(time.Hour)
			})
		})
	}
}

// Closing the default Scheduler would end the timers of other packages.
func TestDefault_CannotBeClosed(t *testing.T) {
	s := Default()
	require.PanicsWithValue(t, "timer: Close: the default Scheduler must not be closed, because the whole program shares it: close a Scheduler made by New",
		func() { s.Close() })
	require.PanicsWithValue(t, "timer: Shutdown: the default Scheduler must not be closed, because the whole program shares it: close a Scheduler made by New",
		func() { s.Shutdown(t.Context()) })
	h, err := s.Start(time.Hour, func() {})
	require.NoError(t, err, "it goes on")
	require.True(t, h.Stop())
}

// Default panics in a bubble, whether or not the default Scheduler exists already.
func TestDefault_PanicsInABubble(t *testing.T) {
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			require.PanicsWithValue(t, "timer: Default: must not be called inside a testing/synctest bubble:"+
				" call timer.New inside the bubble", func() { Default() })
			AfterFunc(time.Second, func() {}).Stop() // of package time
		})
		Default().AfterFunc(time.Hour, func() {}).Stop()
	}
}
