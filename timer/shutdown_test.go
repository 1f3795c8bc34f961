package timer_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

func TestSchedulerShutdown_HonoursItsContextOnThePoller(t *testing.T) {
	for name, clk := range map[string]clock.Clock{
		"virtual clock": timertest.NewClock(epoch),
		"system clock":  nil,
	} {
		t.Run(name, func(t *testing.T) {
			s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
			release := make(chan struct{})
			var ran atomic.Int32
			start(t, s, 0, func() { <-release; ran.Inc() })
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			require.ErrorIs(t, s.Shutdown(ctx), context.DeadlineExceeded)
			close(release)
			require.NoError(t, s.Shutdown(t.Context()))
			require.EqualValues(t, 1, ran.Load())
		})
	}
}

// A callback ends the goroutine that advances the clock. The other callbacks of the batch
// run in the next Advance, and not before.
func TestScheduler_InterruptedAdvance(t *testing.T) {
	for name, interrupt := range map[string]func(){
		"panic":  func() { panic("on purpose") },
		"goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			clk := timertest.NewClock(epoch)
			s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline(executor.WithPanicHandler(func(v any, _ []byte) { panic(v) }))))
			var order []int // needs no lock: all callbacks run inside an Advance
			start(t, s, time.Second, interrupt)
			for i := range 5 {
				start(t, s, time.Second, func() { order = append(order, i) })
			}
			advance := func() {
				done := make(chan struct{})
				go func() {
					defer close(done)
					defer func() { _ = recover() }()
					clk.Advance(time.Second)
				}()
				<-done
			}
			advance()
			require.Empty(t, order)
			start(t, s, time.Second, func() { order = append(order, 5) })
			advance()
			require.Equal(t, []int{0, 1, 2, 3, 4, 5}, order)

			// The Scheduler is closed before the next Advance. The other callbacks still
			// run, because their timers had fired.
			closed := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline(executor.WithPanicHandler(func(v any, _ []byte) { panic(v) }))))
			order = nil
			start(t, closed, time.Second, interrupt)
			start(t, closed, time.Second, func() { order = append(order, 0) })
			advance()
			require.Empty(t, closeAll(closed))
			require.Empty(t, order)
			advance()
			require.Equal(t, []int{0}, order)
			_, set := clk.Next()
			require.False(t, set, "an alarm is left")

			// The first callback ends its goroutine. Shutdown runs the other callbacks.
			order = nil
			start(t, s, 0, runtime.Goexit)
			for i := range 3 {
				start(t, s, 0, func() { order = append(order, i) })
			}
			require.NoError(t, s.Shutdown(t.Context()))
			require.Equal(t, []int{0, 1, 2}, order)
		})
	}
}

// A callback ends the poller's goroutine while Shutdown waits for the poller. The other
// callbacks still run.
func TestScheduler_InterruptedWhileShutdownWaits(t *testing.T) {
	for name, interrupt := range map[string]func(){
		"panic":  func() { panic("on purpose") },
		"goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clk := timertest.NewClock(epoch)
				s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline(executor.WithPanicHandler(func(v any, _ []byte) { panic(v) }))))
				var order []int
				release := make(chan struct{})
				start(t, s, time.Second, func() { <-release; interrupt() })
				start(t, s, time.Second, func() { order = append(order, 0) })
				start(t, s, time.Second, func() { order = append(order, 1) })
				go func() {
					defer func() { _ = recover() }()
					clk.Advance(time.Second)
				}()
				synctest.Wait()
				start(t, s, 0, func() { order = append(order, 2) })
				down := make(chan error)
				go func() { down <- s.Shutdown(t.Context()) }()
				synctest.Wait()
				close(release)
				require.NoError(t, <-down)
				require.ElementsMatch(t, []int{0, 1, 2}, order)
				require.NoError(t, s.Shutdown(t.Context()))
				require.Len(t, order, 3)
			})
		})
	}
}

// Shutdown returns nil if nothing is left to wait for, even if its context has ended.
func TestSchedulerShutdown_NothingLeftAndAContextThatHasEnded(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		clk := timertest.NewClock(epoch)
		require.NoError(t, timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline())).Shutdown(ended))
		// All alarms on the system's clock share a goroutine. While it works for another
		// test, Shutdown returns the error of its context.
		for s := timer.New(timer.WithExecutor(executor.NewInline())); s.Shutdown(ended) != nil; {
			runtime.Gosched()
		}
	}
}
