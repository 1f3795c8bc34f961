package timer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"
	"golang.org/x/sync/errgroup"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// goEach is an executor with a Submit method and no other.
type goEach struct{}

func (goEach) Submit(f func()) error { go f(); return nil }

func TestWithExecutor_NeedsSubmitAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, clk := range []*timertest.Clock{nil, timertest.NewClock(time.Now())} {
			var opts []timer.Option
			if clk != nil {
				opts = append(opts, timer.WithClock(clk))
			}
			s := timer.New(append(opts, timer.WithExecutor(goEach{}))...)
			ran := make(chan int, 600)
			for i := range cap(ran) { // more than a batch; half of them are due at once
				_, err := s.Start(time.Duration(i%2), func() { ran <- i })
				require.NoError(t, err)
			}
			if clk != nil {
				clk.Advance(time.Second)
			}
			time.Sleep(time.Second)
			require.NoError(t, s.Shutdown(t.Context()))
			require.Len(t, ran, cap(ran))
			require.EqualValues(t, cap(ran), s.Stats().Fired)
		}
	})
}

// A callback that a one-method executor refuses is counted, and still runs.
func TestWithExecutor_RefusalsOfSubmitAlone(t *testing.T) {
	clk := timertest.NewClock(time.Unix(0, 0))
	refuse := executor.Func(func(func()) error { return errors.New("no") })
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(refuse))
	var ran atomic.Int64
	for range 10 {
		_, err := s.Start(time.Second, func() { ran.Inc() })
		require.NoError(t, err)
	}
	clk.Advance(2 * time.Second)
	require.EqualValues(t, 10, s.Stats().Refused)
	require.NoError(t, s.Shutdown(t.Context()))
	require.EqualValues(t, 10, ran.Load())
}

// The panic handler also gets panics of timers that have fallen back to package time.
func TestWithPanicHandler_AfterClose(t *testing.T) {
	for _, opts := range [][]timer.Option{nil, {timer.WithExecutor(executor.NewGoroutines())}} {
		synctest.Test(t, func(t *testing.T) {
			var got []any
			s := timer.New(append(opts, timer.WithPanicHandler(func(v any, _ []byte) { got = append(got, v) }))...)
			s.Close()
			s.AfterFunc(time.Second, func() { panic("late") })
			time.Sleep(2 * time.Second)
			synctest.Wait()
			require.Equal(t, []any{"late"}, got)
			require.EqualValues(t, 1, s.Stats().Panicked)
		})
	}
}

// Panics of callbacks go to the Scheduler's panic handler. If there is none, they go to
// the executor of WithExecutor.
func TestWithPanicHandler_BesideWithExecutor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ofExecutor []any
		e := executor.NewGoroutines(executor.WithPanicHandler(func(v any, _ []byte) { ofExecutor = append(ofExecutor, v) }))
		onePanic := func(opts ...timer.Option) {
			s := timer.New(append(opts, timer.WithExecutor(e))...)
			_, err := s.Start(time.Second, func() { panic("boom") })
			require.NoError(t, err)
			time.Sleep(2 * time.Second)
			require.NoError(t, s.Shutdown(t.Context()))
		}
		var ofScheduler []any
		var stack string
		onePanic(timer.WithPanicHandler(func(v any, s []byte) { ofScheduler, stack = append(ofScheduler, v), string(s) }))
		require.Equal(t, []any{"boom"}, ofScheduler)
		require.Contains(t, stack, "BesideWithExecutor")
		require.Empty(t, ofExecutor)
		require.Zero(t, e.Stats().Panicked)

		onePanic()
		require.NoError(t, e.Shutdown(t.Context()))
		require.Equal(t, []any{"boom"}, ofExecutor)
		require.EqualValues(t, 1, e.Stats().Panicked)
		require.Len(t, ofScheduler, 1)
	})
}

func TestWithPanicHandler_Nil(t *testing.T) {
	require.PanicsWithValue(t, "timer: WithPanicHandler: the func must not be nil",
		func() { timer.WithPanicHandler(nil) })
}

// Otherwise a start of a timer that is due would panic with the shard's lock held.
func TestWithExecutor_NotMadeByItsConstructor(t *testing.T) {
	for _, e := range []executor.Executor{new(executor.Pool), (*executor.Pool)(nil), new(executor.Goroutines), (*executor.Goroutines)(nil)} {
		require.Panics(t, func() { timer.New(timer.WithExecutor(e)) }, "%T", e)
	}
}

// askingPool is a Pool whose Submit locks all shards. Submit would hang if a Scheduler
// called it while holding a shard's lock.
type askingPool struct {
	*executor.Pool
	s *timer.Scheduler
}

func (p *askingPool) Submit(f func()) error {
	p.s.Len() // takes the lock of every shard
	return p.Pool.Submit(f)
}

type runAtOnce struct{ *executor.Goroutines }

func (runAtOnce) Submit(f func()) error { f(); return nil }

func TestScheduler_ExecutorThatEmbedsOneOfOurs(t *testing.T) {
	pool := &askingPool{Pool: executor.NewPool()}
	pool.s = timer.New(timer.WithExecutor(pool))
	ran := make(chan bool)
	start(t, pool.s, 0, func() { ran <- true })
	<-ran
	require.NoError(t, pool.s.Shutdown(t.Context()))
	require.NoError(t, pool.Shutdown(t.Context()))

	once := runAtOnce{executor.NewGoroutines()}
	s := timer.New(timer.WithExecutor(once))
	var inside atomic.Bool
	inside.Store(true)
	start(t, s, 0, func() {
		s.Len()
		ran <- true // the test receives only after Start has returned
	})
	inside.Store(false)
	<-ran
	require.NoError(t, s.Shutdown(t.Context()))
}

// An errgroup.Group runs the callbacks. TryGo never blocks: if the group is full, the
// callback runs on a new goroutine.
func ExampleWithExecutor_errgroup() {
	var g errgroup.Group
	g.SetLimit(4)
	errFull := errors.New("the group is full")
	s := timer.New(timer.WithExecutor(executor.Func(func(f func()) error {
		if !g.TryGo(func() error { f(); return nil }) {
			return errFull
		}
		return nil
	})))
	s.Start(time.Millisecond, func() { fmt.Println("a callback on the group") })
	s.Sleep(2 * time.Millisecond)
	s.Shutdown(context.Background()) // waits for the callbacks
	fmt.Println(g.Wait())
	// Output:
	// a callback on the group
	// <nil>
}
