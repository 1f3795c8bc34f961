package timer_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
)

// Starting or moving a timer panics. Otherwise the bubble would hang, because the
// Scheduler's alarm is outside it.
func TestScheduler_MadeOutsideABubbleAndUsedInside(t *testing.T) {
	s := timer.New()
	defer s.Close()
	tm, tk := s.NewTimer(time.Hour), s.NewTicker(time.Hour)
	h := start(t, s, time.Hour, func() {})
	synctest.Test(t, func(t *testing.T) {
		for name, use := range map[string]func(){
			"Start":        func() { s.Start(time.Second, func() {}) },
			"Handle.Move":  func() { h.Move(time.Second) },
			"AfterFunc":    func() { s.AfterFunc(time.Second, func() {}) },
			"NewTimer":     func() { s.NewTimer(time.Second) },
			"Timer.Reset":  func() { tm.Reset(time.Second) },
			"After":        func() { s.After(time.Second) },
			"NewTicker":    func() { s.NewTicker(time.Second) },
			"Ticker.Reset": func() { tk.Reset(time.Second) },
			"Tick":         func() { s.Tick(time.Second) },
			"Sleep":        func() { s.Sleep(time.Second) },
		} {
			require.PanicsWithValue(t, "timer: a Scheduler made outside a testing/synctest bubble must not be used"+
				" inside one: call timer.New inside the bubble", use, name)
		}
	})
	require.Equal(t, 3, s.Len(), "nothing was started, and no lock is held")
}

// Inside a bubble timers can be stopped, even the Scheduler's last one.
func TestScheduler_MadeOutsideABubbleAndStoppedInside(t *testing.T) {
	s := timer.New()
	defer s.Close()
	first, last := start(t, s, time.Hour, func() {}), start(t, s, time.Hour, func() {})
	synctest.Test(t, func(t *testing.T) {
		require.True(t, first.Stop())
		require.True(t, last.Stop())
	})
	require.Zero(t, s.Len())
	done := make(chan struct{})
	start(t, s, time.Millisecond, func() { close(done) })
	<-done
}

// A timer is stopped inside a bubble. Timers of another Scheduler still fire, although
// both Schedulers share one alarm.
func TestScheduler_StoppedInsideABubbleBesideOthers(t *testing.T) {
	s, other := timer.New(), timer.New()
	defer s.Close()
	defer other.Close()
	h := start(t, s, time.Hour, func() {})
	synctest.Test(t, func(t *testing.T) { require.True(t, h.Stop()) })
	done := make(chan struct{})
	start(t, other, time.Millisecond, func() { close(done) })
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("a timer of a millisecond has not fired")
	}
}

// Inside a bubble, Close and Shutdown of a Scheduler made outside panic.
func TestScheduler_MadeOutsideABubbleAndClosedInside(t *testing.T) {
	s := timer.New()
	begun, end := make(chan struct{}), make(chan struct{})
	start(t, s, 0, func() { close(begun); <-end })
	<-begun
	start(t, s, time.Hour, func() {})
	synctest.Test(t, func(t *testing.T) {
		for name, closes := range map[string]func(){
			"Close":    func() { s.Close() },
			"Shutdown": func() { s.Shutdown(context.Background()) },
		} {
			require.PanicsWithValue(t, "timer: a Scheduler made outside a testing/synctest bubble must not be used"+
				" inside one: call timer.New inside the bubble", closes, name)
		}
	})
	require.Equal(t, 1, s.Len(), "nothing was closed")
	start(t, s, time.Hour, func() {})
	close(end)
	require.NoError(t, s.Shutdown(context.Background()))
}

// A Scheduler that was closed in a bubble may be closed and shut down again after the
// bubble has ended.
func TestScheduler_ClosedInABubbleAndAgainOutside(t *testing.T) {
	for name, opts := range map[string][]timer.Option{
		"pool":       nil,
		"inline":     {timer.WithExecutor(executor.NewInline())},
		"goroutines": {timer.WithExecutor(executor.NewGoroutines())},
		"serial":     {timer.WithClock(clock.System())},
	} {
		for _, shutdown := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", shutdown), func(t *testing.T) {
				var s *timer.Scheduler
				var h timer.Handle
				var tm *timer.Timer
				synctest.Test(t, func(t *testing.T) {
					s = timer.New(opts...)
					h = start(t, s, time.Hour, func() {})
					tm = s.AfterFunc(time.Hour, func() {})
					start(t, s, time.Second, func() {})
					start(t, s, time.Second, func() {}).Stop()
					time.Sleep(time.Minute) // the trimmer's alarm is set too
					if shutdown {
						require.NoError(t, s.Shutdown(context.Background()))
					} else {
						require.NoError(t, s.Close())
					}
				})
				require.NoError(t, s.Close())
				require.NoError(t, s.Shutdown(context.Background()))
				require.False(t, h.Stop())
				require.False(t, tm.Stop())
				require.False(t, tm.Reset(time.Second))
				_, err := s.Start(time.Second, func() {})
				require.ErrorIs(t, err, timer.ErrClosed)
				synctest.Test(t, func(t *testing.T) {
					require.NoError(t, s.Close())
					require.NoError(t, s.Shutdown(context.Background()))
				})
			})
		}
	}
}

// If a Scheduler was made in a bubble, code outside and in other bubbles can list its
// pending timers.
func TestScheduler_OfABubbleCanBeRead(t *testing.T) {
	var s *timer.Scheduler
	var h timer.Handle
	read := func() {
		require.Equal(t, 2, s.Len())
		require.Equal(t, 2, s.Stats().Pending)
		require.Len(t, slices.Collect(s.Pending()), 2)
	}
	synctest.Test(t, func(t *testing.T) {
		s = timer.New()
		h = start(t, s, time.Hour, func() {})
		start(t, s, time.Minute, func() {})
		start(t, s, 2*time.Hour, func() {})
		time.Sleep(2 * time.Minute)
	})
	read()
	synctest.Test(t, func(*testing.T) { read() })
	require.True(t, h.Stop(), "it was not the last")
}

// A Stop after the bubble has ended works and starts no timer.
func TestScheduler_OfABubbleStoppedOutside(t *testing.T) {
	var h timer.Handle
	var tm *timer.Timer
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		h, tm = start(t, s, time.Hour, func() {}), s.AfterFunc(time.Hour, func() {})
	})
	require.True(t, h.Stop())
	require.True(t, tm.Stop(), "it was the last")
}

// Timers of the default Scheduler are made outside a bubble and reset inside. They follow
// the bubble's clock, until they are reset outside.
func TestDefault_TimersCrossTheBordersOfBubbles(t *testing.T) {
	ran := make(chan time.Time, 10)
	pending := timer.AfterFunc(time.Hour, func() { ran <- time.Now() })
	stopped := timer.AfterFunc(time.Hour, func() { ran <- time.Now() })
	reset := timer.AfterFunc(time.Hour, func() { ran <- time.Now() })
	c, tk := timer.NewTimer(time.Hour), timer.NewTicker(time.Hour)
	stopped.Stop()
	for range 3 { // after two Resets the wheel holds the *Timer
		reset.Stop()
		reset.Reset(time.Hour)
	}
	for range 3 {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			require.True(t, pending.Reset(time.Second))
			require.False(t, stopped.Reset(2*time.Second))
			require.True(t, reset.Reset(3*time.Second))
			require.True(t, reset.Reset(4*time.Second))
			for _, d := range []time.Duration{1, 2, 4} {
				time.Sleep(d*time.Second - time.Since(begin) + time.Nanosecond)
				synctest.Wait()
				require.Len(t, ran, 1)
				require.Equal(t, d*time.Second, (<-ran).Sub(begin))
			}
			c.Reset(time.Second)
			tk.Reset(time.Second)
			time.Sleep(1500 * time.Millisecond)
			require.Len(t, c.C, 1)
			require.Len(t, tk.C, 1)
			require.False(t, pending.Reset(time.Hour))
			require.False(t, stopped.Reset(time.Hour))
			require.True(t, stopped.Stop())
			require.False(t, reset.Reset(time.Hour))
		})
		require.True(t, pending.Reset(time.Hour))
		require.False(t, stopped.Reset(time.Hour))
		require.True(t, stopped.Stop())
		require.True(t, reset.Stop())
		reset.Reset(time.Hour)
		c.Reset(time.Hour)
		tk.Reset(time.Hour)
		require.Empty(t, c.C)
		require.Empty(t, tk.C)
	}
	require.Empty(t, ran)
	for _, x := range []*timer.Timer{pending, reset, c} {
		require.True(t, x.Stop())
	}
	tk.Stop()
}
