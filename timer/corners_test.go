package timer_test

import (
	"context"
	"math"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// askingPool has all methods of a Pool, also the one that says that it never
// blocks.
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
		ran <- true // nobody receives before Start has returned
	})
	inside.Store(false)
	<-ran
	require.NoError(t, s.Shutdown(t.Context()))
}

// A context is done when Advance returns, whose callbacks run inline.
func TestContext_InlineExecutorThatWasGiven(t *testing.T) {
	clk := timertest.NewClock(epoch)
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
	defer s.Close()
	for range 100 {
		ctx, cancel := s.WithTimeout(context.Background(), time.Second)
		clk.Advance(time.Second)
		require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
		cancel()
	}
}

// lockedContext is a context whose methods take a lock that its owner may hold.
type lockedContext struct {
	context.Context
	mu   sync.Mutex
	err  error
	done chan struct{}
}

func (c *lockedContext) Done() <-chan struct{} { return c.done }

func (c *lockedContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// A context calls nothing of a parent's that is neither ours nor package context's,
// neither while that is pending nor once it is done, but on a goroutine of its own:
// whoever asks may hold what its methods wait for.
func TestContext_CallsNothingOfTheParents(t *testing.T) {
	s := timer.New()
	defer s.Close()
	parent := &lockedContext{Context: context.Background(), done: make(chan struct{})}
	ctx, cancel := s.WithTimeout(parent, time.Hour)
	defer cancel()
	child, cancelChild := s.WithTimeout(ctx, time.Minute)
	defer cancelChild()
	other, cancelOther := s.WithTimeout(parent, time.Hour)
	parent.mu.Lock()
	done := ctx.Done()
	for range 100 {
		require.NoError(t, ctx.Err())
		require.NoError(t, child.Err())
	}
	parent.err = context.Canceled
	close(parent.done)
	for range 100 {
		ctx.Err()
		ctx.Done()
		child.Err()
		child.Done()
	}
	cancelOther()
	require.ErrorIs(t, other.Err(), context.Canceled)
	parent.mu.Unlock()
	<-done
	require.ErrorIs(t, ctx.Err(), context.Canceled)
	<-child.Done()
}

func TestContext_StringTellsTheSchedulersTime(t *testing.T) {
	s, _ := virtual(t)
	ctx, cancel := s.WithTimeout(context.Background(), time.Second)
	defer cancel()
	require.Contains(t, ctx.(interface{ String() string }).String(), "[1s]")
}

func TestSchedulerShutdown_HonoursItsContextOnThePoller(t *testing.T) {
	for name, opt := range map[string]timer.Option{
		"virtual clock":   timer.WithClock(timertest.NewClock(epoch)),
		"inline executor": timer.WithExecutor(executor.NewInline()),
	} {
		t.Run(name, func(t *testing.T) {
			s := timer.New(opt)
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

// What is left of a batch, one of whose callbacks has ended the goroutine that
// advances the clock, runs in the next Advance, and not behind its back.
func TestScheduler_InterruptedAdvance(t *testing.T) {
	for name, interrupt := range map[string]func(){
		"panic":  func() { panic("on purpose") },
		"goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			clk := timertest.NewClock(epoch)
			s := timer.New(timer.WithClock(clk), timer.WithPanicHandler(func(v any, _ []byte) { panic(v) }))
			var order []int // not guarded: all runs are inside an Advance
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

			// Also if the Scheduler has been closed meanwhile: they had fired.
			closed := timer.New(timer.WithClock(clk), timer.WithPanicHandler(func(v any, _ []byte) { panic(v) }))
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

			// Or by Shutdown.
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

// A timer is refused only if as many as allowed are pending, however they are
// spread over the shards.
func TestScheduler_MaxPendingRefusesNoneTooMany(t *testing.T) {
	const limit, standing, goroutines, each = 1000, 900, 8, 10
	s := timer.New(timer.WithMaxPending(limit), timer.WithShards(4))
	defer s.Close()
	for range standing {
		start(t, s, time.Hour, func() {})
	}
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			var hs [each]timer.Handle
			for range 2000 {
				for i := range hs {
					h, err := s.Start(time.Hour, func() {})
					if err != nil {
						t.Errorf("%v, with %d pending at most", err, standing+goroutines*each)
						return
					}
					hs[i] = h
				}
				for _, h := range hs {
					h.Stop()
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, standing, s.Len())
	for range limit - standing {
		start(t, s, time.Hour, func() {})
	}
	_, err := s.Start(time.Hour, func() {})
	require.ErrorIs(t, err, timer.ErrTooManyPending)
}

func TestLateness_QuantileIsNotBelowTheTrueOne(t *testing.T) {
	clk := timertest.NewClock(epoch)
	s := timer.New(timer.WithClock(clk), timer.WithTick(time.Second))
	defer s.Close()
	for _, d := range []time.Duration{100, 200, 900} { // late by 900, 800 and 100 ms
		start(t, s, d*time.Millisecond, func() {})
	}
	clk.Advance(time.Second)
	l := s.Stats().Lateness
	for _, q := range []struct {
		q    float64
		want time.Duration
	}{{0, 100}, {-1, 100}, {math.NaN(), 100}, {0.3, 100}, {0.5, 800}, {0.6, 800}, {0.67, 900}, {0.99, 900}, {1, 900}, {2, 900}} {
		got, want := l.Quantile(q.q), q.want*time.Millisecond
		require.GreaterOrEqual(t, got, want, q.q)
		require.LessOrEqual(t, got, want+want/8, q.q)
	}
}

// What is over is so whatever the context says.
func TestSchedulerShutdown_NothingLeftAndAContextThatHasEnded(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		clk := timertest.NewClock(epoch)
		for _, s := range []*timer.Scheduler{timer.New(timer.WithClock(clk)), timer.New(timer.WithExecutor(executor.NewInline()))} {
			require.NoError(t, s.Shutdown(ended))
		}
	}
}
