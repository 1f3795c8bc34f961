package timer_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
)

func TestSchedulerStart_FiresAtTheRoundedUpTick(t *testing.T) {
	for _, c := range []struct{ tick, delay, want time.Duration }{
		{time.Millisecond, 5 * time.Millisecond, 5 * time.Millisecond}, // on a tick: due at that tick
		{time.Millisecond, 5*time.Millisecond + 1, 6 * time.Millisecond},
		{time.Millisecond, 1, time.Millisecond},
		{100 * time.Millisecond, 150 * time.Millisecond, 200 * time.Millisecond}, // Kafka: at 91
		{1, 12345, 12345},
		{time.Hour, time.Minute, time.Hour},
		{7 * time.Microsecond, 10 * time.Microsecond, 14 * time.Microsecond},
	} {
		s, clk := virtual(t, timer.WithTick(c.tick))
		var at time.Time
		start(t, s, c.delay, func() { at = clk.Now() })
		clk.Advance(c.want - 1)
		require.Zero(t, at, "%+v: early", c)
		clk.Advance(1)
		require.Equal(t, epoch.Add(c.want), at, "%+v", c)
	}
}

func TestSchedulerStart_DueAtOnceNeverRunsInside(t *testing.T) {
	s, clk := virtual(t)
	for _, d := range []time.Duration{0, -1, -5 * time.Millisecond, math.MinInt64} {
		ran := false
		h := start(t, s, d, func() { ran = true })
		require.False(t, ran, "inside Start")
		require.False(t, h.Stop(), "it has fired already")
		require.False(t, h.Move(time.Hour))
		clk.Advance(0)
		require.True(t, ran, d)
	}
	st := s.Stats()
	require.EqualValues(t, 4, st.Fired)
	balanced(t, st)
}

func TestSchedulerStart_SaturatesAtTheEndOfTime(t *testing.T) {
	for _, tick := range []time.Duration{1, 3, time.Millisecond, time.Hour, math.MaxInt64} {
		s, clk := virtual(t, timer.WithTick(tick))
		clk.Advance(time.Hour + 1)
		for _, d := range []time.Duration{math.MaxInt64, math.MaxInt64 - 1, 1.7e18 * 5} {
			start(t, s, d, func() { t.Errorf("tick %v: a delay of %v fired", tick, d) })
		}
		ran := false
		start(t, s, min(tick, time.Hour), func() { ran = true }) // other timers still work
		clk.Advance(200 * 365 * 24 * time.Hour)
		require.Equal(t, tick != math.MaxInt64, ran)
		require.GreaterOrEqual(t, s.Len(), 3)
	}
}

func TestSchedulerStart_NilFuncPanics(t *testing.T) {
	s, _ := virtual(t)
	require.PanicsWithValue(t, "timer: Start: the func must not be nil", func() { s.Start(time.Second, nil) })
	require.Zero(t, s.Stats().Started)
}

func TestSchedulerAfterFunc_NilFuncPanicsAtFiring(t *testing.T) {
	var got any
	var stack []byte
	s, clk := virtual(t, timer.WithPanicHandler(func(v any, st []byte) { got, stack = v, st }))
	s.AfterFunc(time.Second, nil)
	clk.Advance(time.Second)
	require.Error(t, got.(runtime.Error))
	require.NotEmpty(t, stack)
}

func TestNew_RefusesBadOptions(t *testing.T) {
	for name, f := range map[string]func(){
		"timer: WithTick: the tick must be positive, got 0s":                         func() { timer.New(timer.WithTick(0)) },
		"timer: WithTick: the tick must be positive, got -1ns":                       func() { timer.New(timer.WithTick(-1)) },
		"timer: WithShards: the number of shards must be from 1 to 65536, got 0":     func() { timer.New(timer.WithShards(0)) },
		"timer: WithShards: the number of shards must be from 1 to 65536, got 65537": func() { timer.New(timer.WithShards(65537)) },
		"timer: WithMaxPending: the limit must be positive, got -1":                  func() { timer.New(timer.WithMaxPending(-1)) },
	} {
		require.PanicsWithValue(t, name, f)
	}
}

func TestHandle_ZeroAndStale(t *testing.T) {
	require.False(t, timer.Handle{}.Stop())
	require.False(t, timer.Handle{}.Move(time.Second))
	s, clk := virtual(t)
	h := start(t, s, time.Second, func() {})
	require.True(t, h.Stop())
	require.False(t, h.Stop(), "stopped before")
	// Another timer now uses the memory of the stopped one.
	ran := false
	h2 := start(t, s, time.Second, func() { ran = true })
	require.False(t, h.Stop())
	require.False(t, h.Move(0))
	require.NotEqual(t, h, h2)
	clk.Advance(time.Second)
	require.True(t, ran)
	require.False(t, h2.Stop(), "fired before")
}

func TestHandleReset(t *testing.T) {
	s, clk := virtual(t)
	var at []time.Duration
	f := func() { at = append(at, clk.Now().Sub(epoch)) }
	later, earlier, atOnce := start(t, s, 2*time.Second, f), start(t, s, time.Hour, f), start(t, s, time.Hour, f)
	require.True(t, later.Move(3*time.Second))
	require.True(t, earlier.Move(time.Second))
	require.True(t, atOnce.Move(-1))
	require.False(t, atOnce.Move(time.Second), "it has fired")
	clk.Advance(time.Minute)
	require.Equal(t, []time.Duration{0, time.Second, 3 * time.Second}, at)
	balanced(t, s.Stats())
}

func TestTimer_StopAndReset(t *testing.T) {
	s, clk := virtual(t)
	n := 0
	tm := s.AfterFunc(time.Second, func() { n++ })
	require.Nil(t, tm.C)
	require.True(t, tm.Reset(2*time.Second))
	clk.Advance(time.Second)
	require.Zero(t, n)
	clk.Advance(time.Second)
	require.Equal(t, 1, n)
	require.False(t, tm.Stop())
	require.False(t, tm.Reset(time.Second), "not active, but started again")
	require.True(t, tm.Stop())
	require.False(t, tm.Reset(time.Second))
	require.True(t, tm.Reset(0))
	clk.Advance(0)
	require.Equal(t, 2, n)
	st := s.Stats()
	require.EqualValues(t, 3, st.Started)
	require.EqualValues(t, 2, st.Fired)
	require.EqualValues(t, 1, st.Stopped)
	balanced(t, st)
}

func TestTimer_ZeroValuePanics(t *testing.T) {
	require.PanicsWithValue(t, "timer: Stop called on uninitialized Timer", func() { new(timer.Timer).Stop() })
	require.PanicsWithValue(t, "timer: Reset called on uninitialized Timer", func() { new(timer.Timer).Reset(1) })
}

func TestScheduler_UseAfterClose(t *testing.T) {
	s, clk := virtual(t)
	h := start(t, s, time.Second, func() { t.Error("ran after Close") })
	tm := s.AfterFunc(2*time.Second, func() {})
	ps := closeAll(s)
	require.Len(t, ps, 2)
	require.Equal(t, epoch.Add(time.Second), ps[0].Deadline)
	require.Equal(t, epoch.Add(2*time.Second), ps[1].Deadline)
	require.NotNil(t, ps[1].Func)
	require.Nil(t, closeAll(s), "Close is idempotent")
	require.False(t, h.Stop(), "handed back")
	require.False(t, h.Move(1))
	require.False(t, tm.Stop())
	_, err := s.Start(time.Second, func() {})
	require.ErrorIs(t, err, timer.ErrClosed)
	_, err = s.Start(0, func() { t.Error("ran after Close") })
	require.ErrorIs(t, err, timer.ErrClosed)
	clk.Advance(time.Hour)
	st := s.Stats()
	require.EqualValues(t, 2, st.HandedBack)
	require.EqualValues(t, 2, st.Rejected)
	balanced(t, st)
	require.NoError(t, s.Shutdown(context.Background()))
}

func TestSchedulerClose_FromInsideACallback(t *testing.T) {
	s, clk := virtual(t)
	var handed int
	start(t, s, time.Second, func() { handed = len(closeAll(s)) })
	start(t, s, time.Second, func() {}) // in the same batch, so it has fired too
	start(t, s, time.Minute, func() { t.Error("ran after Close") })
	clk.Advance(time.Hour)
	require.Equal(t, 1, handed)
	st := s.Stats()
	require.EqualValues(t, 2, st.Fired)
	balanced(t, st)
}

func TestSchedulerShutdown_WaitsForCallbacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		var done atomic.Bool
		start(t, s, time.Second, func() { time.Sleep(time.Minute); done.Store(true) })
		start(t, s, time.Hour, func() {})
		time.Sleep(2 * time.Second)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		require.ErrorIs(t, s.Shutdown(ctx), context.DeadlineExceeded)
		require.False(t, done.Load())
		require.NoError(t, s.Shutdown(context.Background()))
		require.True(t, done.Load())
		require.Len(t, closeAll(s), 1, "Shutdown must keep pending timers for TakeLeftover")
	})
}

// With every executor, each callback runs once, and Shutdown waits for all.
func TestScheduler_Executors(t *testing.T) {
	for name, e := range executors() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := timer.New(timer.WithExecutor(e()))
				var mu sync.Mutex
				n := 0
				for i := range 1000 {
					start(t, s, time.Duration(i%10-1)*time.Millisecond, func() { mu.Lock(); n++; mu.Unlock() })
				}
				time.Sleep(time.Second)
				require.NoError(t, s.Shutdown(context.Background()))
				st := s.Stats()
				require.Equal(t, 1000, n)
				require.EqualValues(t, 1000, st.Fired)
				require.Zero(t, st.Refused)
				balanced(t, st)
			})
		})
	}
}

func TestScheduler_RefusedByTheExecutorRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		odd := 0
		s := timer.New(timer.WithExecutor(executor.Func(func(f func()) error {
			if odd++; odd%2 == 1 {
				return errors.New("full")
			}
			f()
			return nil
		})))
		var ran atomic.Int64
		for i := range 10 {
			start(t, s, time.Duration(i%2), func() { ran.Inc() })
		}
		time.Sleep(time.Second)
		require.EqualValues(t, 10, ran.Load(), "refused callbacks run too")
		require.EqualValues(t, 5, s.Stats().Refused)
		hang := make(chan struct{})
		start(t, s, 0, func() { <-hang })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, s.Shutdown(ctx), context.DeadlineExceeded, "Shutdown must wait for a refused callback")
		close(hang)
		require.NoError(t, s.Shutdown(context.Background()))
	})
}

func TestScheduler_MaxPending(t *testing.T) {
	for _, shards := range []int{1, 4} {
		s, clk := virtual(t, timer.WithMaxPending(10), timer.WithShards(shards))
		var hs []timer.Handle
		for range 10 {
			hs = append(hs, start(t, s, time.Second, func() {}))
		}
		full := func() {
			t.Helper()
			_, err := s.Start(time.Second, func() {})
			require.ErrorIs(t, err, timer.ErrTooManyPending)
			require.True(t, s.AfterFunc(time.Second, func() {}).Stop(), "it is not counted")
		}
		full()
		start(t, s, 0, func() {}) // does not count against the limit
		require.True(t, hs[3].Stop())
		hs[3] = start(t, s, time.Second, func() {}) // stopping made room
		full()
		clk.Advance(time.Second)
		for range 10 { // firing made room
			start(t, s, time.Second, func() {})
		}
		full()
		st := s.Stats()
		require.EqualValues(t, 3, st.Rejected)
		balanced(t, st)
	}
}

func TestScheduler_MaxPendingUnderContention(t *testing.T) {
	const limit = 100
	s := timer.New(timer.WithMaxPending(limit))
	defer s.Close()
	var pending atomic.Int64 // a lower bound
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			var hs []timer.Handle
			for range 5000 {
				h, err := s.Start(time.Hour, func() {})
				if err == nil {
					hs = append(hs, h)
					if n := pending.Inc(); n > limit {
						t.Errorf("%d pending", n)
					}
				}
				if len(hs) > 20 || err != nil {
					for _, h := range hs {
						pending.Dec()
						h.Stop()
					}
					hs = hs[:0]
				}
			}
			for _, h := range hs {
				pending.Dec()
				h.Stop()
			}
		})
	}
	wg.Wait()
	// The count of pending timers is exact: the limit can be reached again.
	for range limit {
		start(t, s, time.Hour, func() {})
	}
	_, err := s.Start(time.Hour, func() {})
	require.ErrorIs(t, err, timer.ErrTooManyPending)
}

// A callback calls runtime.Goexit, as FailNow of a test does. That ends the poller's
// goroutine in the middle of a batch.
func TestScheduler_GoexitInAnInlineCallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New(timer.WithExecutor(executor.NewInline()), timer.WithShards(2))
		var n atomic.Int64
		for i := range 1000 {
			start(t, s, time.Duration(1+i%2)*time.Second, func() {
				n.Inc()
				if i%100 == 0 {
					runtime.Goexit()
				}
			})
		}
		time.Sleep(time.Minute)
		require.EqualValues(t, 1000, n.Load())
		start(t, s, time.Second, func() { n.Inc() })
		time.Sleep(time.Minute)
		require.EqualValues(t, 1001, n.Load(), "the poller must go on after Goexit")
		require.NoError(t, s.Shutdown(context.Background()))
	})
}

func TestStats_Lateness(t *testing.T) {
	var l timer.Histogram
	require.Zero(t, l.Quantile(0.5))
	s, clk := virtual(t, timer.WithTick(time.Second))
	start(t, s, time.Second-400*time.Millisecond, func() {})
	start(t, s, time.Second, func() {})
	clk.Advance(time.Minute)
	l = s.Stats().Lateness
	require.EqualValues(t, 2, l.Count())
	require.Equal(t, 400*time.Millisecond, l.Max())
	require.Zero(t, l.Quantile(0.5))
	require.Equal(t, 400*time.Millisecond, l.Quantile(1))
	require.Equal(t, 400*time.Millisecond, s.Stats().Lateness.Quantile(1), "Quantile of a value that is not addressable")
}

// With clock.System a callback that blocks does not delay others, as without a clock.
func TestWithClock_SystemIsTheDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New(timer.WithClock(clock.System()))
		unblock := make(chan struct{})
		ran := atomic.NewInt32(0)
		start(t, s, time.Second, func() { <-unblock })
		for range 10 {
			start(t, s, time.Second, func() { ran.Inc() })
			start(t, s, time.Minute, func() { ran.Inc() })
		}
		time.Sleep(time.Hour)
		require.EqualValues(t, 20, ran.Load())
		close(unblock)
		require.NoError(t, s.Shutdown(t.Context()))
	})
}
