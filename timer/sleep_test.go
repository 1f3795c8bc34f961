package timer_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New(timer.WithTick(time.Millisecond))
		defer s.Close()
		for _, c := range []struct{ d, want time.Duration }{
			{0, 0}, {-1, 0}, {-time.Hour, 0},
			{time.Second, time.Second},
			{1, time.Millisecond},
			{1500 * time.Microsecond, 2 * time.Millisecond},
			{1000 * time.Hour, 1000 * time.Hour},
		} {
			begin := time.Now()
			// Sleep ends at a tick. Ticks count from when the Scheduler was made.
			s.Sleep(c.d)
			require.Equal(t, c.want, time.Since(begin), "Sleep(%v)", c.d)
		}
		require.Zero(t, s.Len())
		balanced(t, s.Stats())
	})
}

func TestSleep_OnAVirtualClock(t *testing.T) {
	s, clk := virtual(t)
	done := make(chan time.Time)
	go func() {
		s.Sleep(time.Second)
		done <- clk.Now()
	}()
	for s.Len() == 0 {
		time.Sleep(100 * time.Microsecond)
	}
	clk.Advance(time.Second)
	require.Equal(t, epoch.Add(time.Second), <-done)
}

func TestSleep_ReturnsAtClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		begin := time.Now()
		awake := make(chan time.Duration, 10)
		for i := range 10 {
			go func() {
				s.Sleep(time.Duration(1+i) * time.Hour)
				awake <- time.Since(begin)
			}()
		}
		time.Sleep(90 * time.Minute)
		require.Len(t, awake, 1)
		require.Equal(t, time.Hour, <-awake)
		handed := closeAll(s)
		require.Len(t, handed, 9)
		for _, p := range handed {
			require.Nil(t, p.Func)
		}
		synctest.Wait()
		for range 9 {
			require.Equal(t, 90*time.Minute, <-awake)
		}
	})
}

// A loop that sleeps between two attempts does not spin after the Scheduler is closed.
func TestSleep_OnAClosedScheduler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		s.Close()
		begin := time.Now()
		for i := range 3 {
			s.Sleep(time.Hour)
			require.Equal(t, time.Duration(i+1)*time.Hour, time.Since(begin))
		}
		s.Sleep(0)
		require.Equal(t, 3*time.Hour, time.Since(begin))
	})
}

func TestSleep_ReturnsAtShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		begin := time.Now()
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.Sleep(time.Hour)
		}()
		time.Sleep(time.Second)
		require.NoError(t, s.Shutdown(context.Background()))
		<-done
		require.Equal(t, time.Second, time.Since(begin))
	})
}

func TestAfter(t *testing.T) {
	s, clk := virtual(t)
	a, b := s.After(time.Second), s.After(time.Hour)
	clk.Advance(time.Minute)
	require.Equal(t, epoch.Add(time.Second), <-a)
	handed := closeAll(s)
	require.Len(t, handed, 1)
	require.Nil(t, handed[0].Func)
	c := s.After(time.Second)
	clk.Advance(24 * time.Hour)
	for _, c := range []<-chan time.Time{a, b} {
		requireEmpty(t, c, "after Close")
	}
	require.Len(t, c, 1, "it falls back")
}

func TestSleepContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		begin := time.Now()
		require.NoError(t, s.SleepContext(t.Context(), time.Second))
		require.Equal(t, time.Second, time.Since(begin))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, s.SleepContext(ctx, time.Hour), context.DeadlineExceeded)
		require.Equal(t, 2*time.Second, time.Since(begin))
		require.ErrorIs(t, s.SleepContext(ctx, 0), context.DeadlineExceeded)
		require.NoError(t, s.SleepContext(t.Context(), 0))
		require.NoError(t, s.SleepContext(t.Context(), -1))
		require.Equal(t, 2*time.Second, time.Since(begin))
		st := s.Stats()
		require.EqualValues(t, 1, st.Stopped, "the timer must be stopped when the context ends")
		require.Zero(t, st.Pending)
		balanced(t, st)
		time.AfterFunc(time.Second, func() { s.Close() })
		require.ErrorIs(t, s.SleepContext(t.Context(), time.Hour), timer.ErrClosed)
		require.ErrorIs(t, s.SleepContext(t.Context(), time.Hour), timer.ErrClosed)
		require.NoError(t, s.Shutdown(t.Context()))
	})
}

// The context ends at the moment at which the sleep ends. Either result is right.
func TestSleepContext_AtTheSameMoment(t *testing.T) {
	s := timer.New()
	defer s.Close()
	for range 300 {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Microsecond, cancel)
		if err := s.SleepContext(ctx, 50*time.Microsecond); err != nil {
			require.ErrorIs(t, err, context.Canceled)
		}
		cancel()
	}
	balanced(t, s.Stats())
}

// A callback may sleep under a virtual clock: it runs on another goroutine than the one
// that advances the clock.
func TestSleep_InACallbackUnderAVirtualClock(t *testing.T) {
	for name, sleep := range map[string]func(*timer.Scheduler) error{
		"Sleep":        func(s *timer.Scheduler) error { s.Sleep(time.Second); return nil },
		"SleepContext": func(s *timer.Scheduler) error { return s.SleepContext(context.Background(), time.Second) },
	} {
		clk := timertest.NewClock(epoch)
		s := timer.New(timer.WithClock(clk))
		woken := make(chan error)
		start(t, s, time.Second, func() { woken <- sleep(s) })
		clk.Advance(time.Second)
		for s.Stats().Started < 2 {
			runtime.Gosched() // until the callback sleeps
		}
		clk.Advance(time.Second)
		for done := false; !done; {
			select {
			case err := <-woken:
				require.NoError(t, err, name)
				done = true
			default:
				clk.Advance(0) // the alarm may have been set after the clock had moved
				runtime.Gosched()
			}
		}
		require.NoError(t, s.Shutdown(t.Context()))
	}
}
