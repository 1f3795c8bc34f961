package timer_test

import (
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// must returns v, and panics if err is not nil.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// leftover closes s and returns its leftover timers.
func leftover(s *timer.Scheduler) iter.Seq[timer.Leftover] {
	s.Close()
	return s.TakeLeftover()
}

// closeAll closes s and returns the timers that were pending.
func closeAll(s *timer.Scheduler) []timer.Leftover { return slices.Collect(leftover(s)) }

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// virtual returns a Scheduler on a virtual clock.
func virtual(t testing.TB, opts ...timer.Option) (*timer.Scheduler, *timertest.Clock) {
	clk := timertest.NewClock(epoch)
	s := timer.New(append([]timer.Option{timer.WithClock(clk), timer.WithExecutor(executor.NewInline())}, opts...)...)
	t.Cleanup(func() { s.Close() })
	return s, clk
}

func start(t testing.TB, s *timer.Scheduler, d time.Duration, f func()) timer.Handle {
	t.Helper()
	h, err := s.Start(d, f)
	require.NoError(t, err)
	return h
}

// balanced fails the test unless Stats accounts for each timer exactly once.
func balanced(t testing.TB, st timer.Stats) {
	t.Helper()
	require.Equal(t, st.Started, st.Fired+st.Stopped+st.HandedBack+st.FellBack+uint64(st.Pending), "%+v", st)
}

func executors() map[string]func() executor.Executor {
	return map[string]func() executor.Executor{
		"default":    func() executor.Executor { return nil },
		"inline":     func() executor.Executor { return executor.NewInline() },
		"goroutines": func() executor.Executor { return executor.NewGoroutines() },
		"pool":       func() executor.Executor { return executor.NewPool() },
		"bounded":    func() executor.Executor { return executor.NewPool(executor.WithWorkers(1), executor.WithMaxWorkers(2)) },
		"one's own":  func() executor.Executor { return executor.Func(func(f func()) error { go f(); return nil }) },
	}
}
