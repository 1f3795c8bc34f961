package timer_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
)

func TestGroup_StopsTogether(t *testing.T) {
	s, clk := virtual(t)
	a, b := timer.NewGroup(s), timer.NewGroup(s)
	ran := map[string]int{}
	var kept timer.Handle
	for i := range 100 {
		must(a.Start(time.Duration(1+i)*time.Second, func() { ran["a"]++ }))
		kept = must(b.Start(time.Duration(1+i)*time.Second, func() { ran["b"]++ }))
	}
	clk.Advance(10 * time.Second)
	require.True(t, kept.Stop(), "a timer of a group is a timer as any other")
	require.Equal(t, 90, a.Len())
	require.Equal(t, 90, a.Stop())
	require.Zero(t, a.Stop())
	require.Zero(t, a.Len())
	require.Equal(t, 89, b.Len())
	must(a.Start(time.Second, func() { ran["again"]++ }))
	clk.Advance(time.Hour)
	require.Equal(t, map[string]int{"a": 10, "b": 99, "again": 1}, ran)
	balanced(t, s.Stats())
}

// What the executor has when the group is stopped does not begin any more.
func TestGroupStop_CallbacksThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := executor.NewPool(executor.WithMaxWorkers(1))
		s := timer.New(timer.WithExecutor(pool))
		release := make(chan struct{})
		must(s.Start(0, func() { <-release }))
		g := timer.NewGroup(s)
		for range 10 {
			must(g.Start(time.Second, func() { t.Error("began after Stop") }))
		}
		time.Sleep(2 * time.Second)
		require.Zero(t, g.Stop(), "all have fired")
		close(release)
		require.NoError(t, g.StopWait(t.Context()))
		require.NoError(t, s.Shutdown(t.Context()))
		require.NoError(t, pool.Shutdown(t.Context()))
	})
}

func TestGroupStopWait_WaitsForWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		g := timer.NewGroup(s)
		ended := atomic.NewInt32(0)
		for range 3 {
			must(g.Start(time.Second, func() { time.Sleep(time.Minute); ended.Inc() }))
		}
		must(g.Start(time.Hour, func() { t.Error("stopped") }))
		time.Sleep(2 * time.Second)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, g.StopWait(short), context.DeadlineExceeded)
		require.Zero(t, ended.Load())
		require.NoError(t, g.StopWait(t.Context()))
		require.EqualValues(t, 3, ended.Load())
		require.NoError(t, s.Shutdown(t.Context()))
	})
}

// A callback that runs outside a bubble cannot wake who waits in one: the process ends.
func TestGroupStopWait_InABubbleThatItIsNotOf(t *testing.T) {
	s := timer.New()
	g := timer.NewGroup(s)
	runs, release, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	must(g.Start(0, func() { close(runs); <-release; close(ended) }))
	must(g.Start(time.Hour, func() {}))
	<-runs
	synctest.Test(t, func(t *testing.T) {
		require.Panics(t, func() { g.StopWait(t.Context()) })
	})
	require.Equal(t, 1, g.Len(), "nothing was stopped")
	close(release)
	<-ended
	require.NoError(t, g.StopWait(t.Context()))
	require.NoError(t, s.Shutdown(t.Context()))
}

// A panic of a callback leaves nobody waiting.
func TestGroupStopWait_AfterAPanic(t *testing.T) {
	s, clk := virtual(t, timer.WithPanicHandler(func(any, []byte) {}))
	g := timer.NewGroup(s)
	must(g.Start(time.Second, func() { panic("boom") }))
	clk.Advance(time.Second)
	require.NoError(t, g.StopWait(t.Context()))
}

func TestGroup_Refuses(t *testing.T) {
	s, _ := virtual(t, timer.WithMaxPending(1))
	g := timer.NewGroup(s)
	must(g.Start(time.Second, func() {}))
	_, err := g.Start(time.Second, func() {})
	require.ErrorIs(t, err, timer.ErrTooManyPending)
	require.Equal(t, 1, g.Len())
	s.Close()
	require.Zero(t, g.Stop(), "Close has it")
	_, err = g.Start(time.Second, func() {})
	require.ErrorIs(t, err, timer.ErrClosed)
	require.Panics(t, func() { g.Start(1, nil) })
	require.Panics(t, func() { timer.NewGroup(nil) })
	require.PanicsWithValue(t, "timer: a Group that was not made by NewGroup", func() { new(timer.Group).Stop() })
}

// A group in which timers come and go does not grow.
func TestGroup_ForgetsWhatIsOver(t *testing.T) {
	s, clk := virtual(t)
	g := timer.NewGroup(s)
	before := heap()
	for range 100_000 {
		must(g.Start(time.Second, func() {}))
		clk.Advance(time.Second)
	}
	require.Less(t, heap()-before, int64(100_000))
	require.Zero(t, g.Len())
}

// Starts and stops from many goroutines: what began was not stopped before.
func TestGroup_Stress(t *testing.T) {
	s := timer.New()
	g := timer.NewGroup(s)
	over := atomic.NewBool(false)
	done := make(chan struct{})
	for range 4 {
		go func() {
			for range 2000 {
				g.Start(time.Duration(50)*time.Microsecond, func() {
					if over.Load() {
						t.Error("began after the last Stop")
					}
				})
			}
			done <- struct{}{}
		}()
	}
	for range 4 {
		for range 50 {
			g.Stop()
		}
		<-done
	}
	require.NoError(t, g.StopWait(t.Context()))
	over.Store(true)
	require.NoError(t, s.Shutdown(t.Context()))
	balanced(t, s.Stats())
}
