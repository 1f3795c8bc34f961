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

const usedInside = "timer: a Scheduler made outside a testing/synctest bubble must not be used inside one:" +
	" make it, or a timer of the package's functions, inside the bubble"

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
			require.PanicsWithValue(t, usedInside, use, name)
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
	<-done
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
			require.PanicsWithValue(t, usedInside, closes, name)
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

// Timers of the default Scheduler that were made outside a bubble cannot be reset inside:
// the default Scheduler does not follow the bubble's clock. They can be stopped.
func TestDefault_TimersCrossTheBordersOfBubbles(t *testing.T) {
	tm, tk := timer.AfterFunc(time.Hour, func() {}), timer.NewTicker(time.Hour)
	resets := timer.AfterFunc(time.Hour, func() {})
	for range 3 { // after two Resets the wheel holds the *Timer
		resets.Stop()
		resets.Reset(time.Hour)
	}
	synctest.Test(t, func(t *testing.T) {
		for _, reset := range []func(){
			func() { tm.Reset(time.Second) },
			func() { tk.Reset(time.Second) },
			func() { resets.Reset(time.Second) },
		} {
			require.PanicsWithValue(t, usedInside, reset)
		}
		require.True(t, tm.Stop())
		tk.Stop()
	})
	require.False(t, tm.Reset(time.Hour))
	require.True(t, tm.Stop())
	require.True(t, resets.Stop())
}
