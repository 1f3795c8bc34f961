package timer_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
)

// seconds makes a list of durations readable.
func seconds(fs ...float64) []time.Duration {
	ds := make([]time.Duration, len(fs))
	for i, f := range fs {
		ds[i] = time.Duration(math.Round(f * float64(time.Second)))
	}
	return ds
}

func TestEvery_FixedRate(t *testing.T) {
	for _, period := range []time.Duration{time.Second, 333 * time.Millisecond, 90 * time.Minute} {
		s, clk := virtual(t)
		n := 0
		j := must(s.Every(period, func() {
			n++
			require.Equal(t, epoch.Add(time.Duration(n)*period), clk.Now(), "drift")
		}))
		require.Equal(t, epoch.Add(period), j.Next())
		clk.Advance(1000*period - 1)
		require.Equal(t, 999, n)
		require.Equal(t, epoch.Add(1000*period), j.Next())
		clk.Advance(1)
		require.Equal(t, 1000, n)
		require.True(t, j.Stop())
		require.Zero(t, j.Next())
		clk.Advance(10 * period)
		require.Equal(t, 1000, n)
		st := s.Stats()
		require.EqualValues(t, 1000, st.Fired)
		require.Zero(t, st.Pending)
		balanced(t, st)
	}
}

// A period that is no multiple of the tick: each run is less than a tick late,
// which does not add up.
func TestEvery_DoesNotDriftByTheTick(t *testing.T) {
	s, clk := virtual(t, timer.WithTick(time.Millisecond))
	n := 0
	s.Every(1300*time.Microsecond, func() {
		n++
		late := clk.Now().Sub(epoch) - time.Duration(n)*1300*time.Microsecond
		require.GreaterOrEqual(t, late, time.Duration(0))
		require.Less(t, late, time.Millisecond)
	})
	clk.Advance(1300 * time.Millisecond)
	require.Equal(t, 1000, n)
}

func TestEvery_FirstAfter(t *testing.T) {
	for _, c := range []struct {
		first time.Duration
		want  []time.Duration
	}{
		{0, seconds(0, 1, 2, 3)},
		{-time.Hour, seconds(0, 1, 2, 3)},
		{math.MinInt64, seconds(0, 1, 2, 3)},
		{time.Second, seconds(1, 2, 3)},
		{2500 * time.Millisecond, seconds(2.5, 3.5)},
		{time.Hour, nil},
		{math.MaxInt64, nil},
	} {
		s, clk := virtual(t)
		var at []time.Duration
		inside := true
		s.Every(time.Second, func() {
			require.False(t, inside, "inside Every")
			at = append(at, clk.Now().Sub(epoch))
		}, timer.FirstAfter(c.first))
		inside = false
		clk.Advance(3500 * time.Millisecond)
		require.Equal(t, c.want, at, "FirstAfter(%v)", c.first)
		balanced(t, s.Stats())
	}
	s, clk := virtual(t)
	s.Every(math.MaxInt64, func() { t.Error("ran") })
	clk.Advance(250 * 365 * 24 * time.Hour)
	require.Equal(t, 1, s.Len())
}

// Runs that take longer than the period, as they do on the wall: the first takes
// 2.5 periods, the others no time.
func TestEvery_OverlongRun(t *testing.T) {
	for name, c := range map[string]struct {
		opts []timer.EveryOption
		want []time.Duration
	}{
		"skip is the default": {nil, seconds(1, 4, 5, 6)},
		"skip":                {[]timer.EveryOption{timer.OnOverrun(timer.Skip)}, seconds(1, 4, 5, 6)},
		"burst":               {[]timer.EveryOption{timer.OnOverrun(timer.Burst)}, seconds(1, 3.5, 3.5, 4, 5, 6)},
		"delay":               {[]timer.EveryOption{timer.OnOverrun(timer.Delay)}, seconds(1, 3.5, 4.5, 5.5)},
		"fixed delay":         {[]timer.EveryOption{timer.FixedDelay()}, seconds(1, 4.5, 5.5)},
		"fixed delay, burst":  {[]timer.EveryOption{timer.OnOverrun(timer.Burst), timer.FixedDelay()}, seconds(1, 4.5, 5.5)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := timer.New()
				begin := time.Now()
				var at []time.Duration
				s.Every(time.Second, func() {
					at = append(at, time.Since(begin))
					if len(at) == 1 {
						time.Sleep(2500 * time.Millisecond)
					}
				}, c.opts...)
				time.Sleep(6400 * time.Millisecond)
				require.NoError(t, s.Shutdown(context.Background()))
				require.Equal(t, c.want, at)
				balanced(t, s.Stats())
			})
		})
	}
}

// A pause of the whole process: everything is late at once.
func TestEvery_Pause(t *testing.T) {
	for name, c := range map[string]struct {
		opts []timer.EveryOption
		want []time.Duration
	}{
		"skip":        {nil, seconds(1, 11.5, 12, 13)},
		"burst":       {[]timer.EveryOption{timer.OnOverrun(timer.Burst)}, seconds(1, 11.5, 11.5, 11.5, 11.5, 11.5, 11.5, 11.5, 11.5, 11.5, 11.5, 12, 13)},
		"delay":       {[]timer.EveryOption{timer.OnOverrun(timer.Delay)}, seconds(1, 11.5, 12.5, 13.5)},
		"fixed delay": {[]timer.EveryOption{timer.FixedDelay()}, seconds(1, 11.5, 12.5, 13.5)},
	} {
		s, clk := newStoppable(t)
		var at []time.Duration
		s.Every(time.Second, func() { at = append(at, clk.Now().Sub(epoch)) }, c.opts...)
		clk.suspend(time.Second)
		clk.suspend(10*time.Second + 500*time.Millisecond)
		for range 20 {
			clk.suspend(100 * time.Millisecond)
		}
		require.Equal(t, c.want, at, name)
		balanced(t, s.Stats())
	}
}

// Runs of random lengths, against what is documented.
func TestEvery_Model(t *testing.T) {
	rng := newRand(t)
	const period = 100
	for name, opts := range map[string][]timer.EveryOption{
		"skip":        {timer.OnOverrun(timer.Skip)},
		"burst":       {timer.OnOverrun(timer.Burst)},
		"delay":       {timer.OnOverrun(timer.Delay)},
		"fixed delay": {timer.FixedDelay()},
	} {
		for range 50 {
			first := time.Duration(rng.IntN(250))
			takes := make([]time.Duration, 30)
			for i := range takes {
				takes[i] = time.Duration(rng.IntN(90))
				if rng.IntN(3) == 0 {
					takes[i] = time.Duration(rng.IntN(400))
				}
				// It ends between two occurrences, never at the very moment of one.
				takes[i] = takes[i]*2 + 1
			}
			// All else is even.
			first *= 2
			const period = 2 * period
			want := expectedRuns(name, first, period, takes)
			synctest.Test(t, func(t *testing.T) {
				s := timer.New(timer.WithTick(1))
				begin := time.Now()
				var got []time.Duration
				var j *timer.Job
				end := make(chan struct{})
				ready := make(chan struct{})
				j = must(s.Every(period, func() {
					<-ready
					i := len(got)
					got = append(got, time.Since(begin))
					if i+1 == len(takes) {
						require.True(t, j.Stop())
						close(end)
						return
					}
					time.Sleep(takes[i])
				}, append(opts, timer.FirstAfter(first))...))
				close(ready)
				<-end
				require.NoError(t, s.Shutdown(context.Background()))
				require.Equal(t, want, got, "%s: first %d, runs take %v", name, first, takes)
				balanced(t, s.Stats())
			})
		}
	}
}

func expectedRuns(mode string, first, period time.Duration, takes []time.Duration) (at []time.Duration) {
	next := first // occurrence
	var end time.Duration
	for i, take := range takes {
		begin := next
		if i > 0 {
			switch mode {
			case "skip":
				for next < end {
					next += period
				}
				begin = next
			case "burst":
				begin = max(next, end)
			case "delay":
				if next < end {
					next = end
				}
				begin = next
			case "fixed delay":
				begin = end + period
			}
		}
		at = append(at, begin)
		end = begin + take
		next += period
	}
	return at
}

// The JDK's ScheduledThreadPoolExecutor: executions of one task never overlap,
// whatever they take and wherever they run.
func TestEvery_RunsNeverOverlap(t *testing.T) {
	for name, e := range executors() {
		for mode, opts := range map[string][]timer.EveryOption{
			"skip":        nil,
			"burst":       {timer.OnOverrun(timer.Burst)},
			"delay":       {timer.OnOverrun(timer.Delay)},
			"fixed delay": {timer.FixedDelay()},
		} {
			t.Run(name+"/"+mode, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					rng := rand.New(rand.NewPCG(1, 2))
					s := timer.New(timer.WithExecutor(e()))
					var running, runs atomic.Int64
					last := -1 // the race detector watches it
					s.Every(time.Millisecond, func() {
						if running.Inc() != 1 {
							t.Error("two runs at once")
						}
						last++
						time.Sleep(time.Duration(rng.IntN(4_000_000)))
						runs.Inc()
						running.Dec()
					}, opts...)
					time.Sleep(time.Second)
					require.NoError(t, s.Shutdown(context.Background()))
					require.Greater(t, runs.Load(), int64(200))
					require.EqualValues(t, runs.Load(), last+1)
					balanced(t, s.Stats())
				})
			})
		}
	}
}

// Nor on the real clock, with other work that competes.
func TestEvery_RunsNeverOverlap_Race(t *testing.T) {
	s := timer.New(timer.WithTick(time.Microsecond))
	var js []*timer.Job
	for i := range 8 {
		last := 0
		js = append(js, must(s.Every(time.Duration(1+i*20)*time.Microsecond, func() {
			last++
			for spin := last % 1000; spin > 0; spin-- {
			}
		}, timer.OnOverrun(timer.Overrun(i%3)))))
	}
	time.Sleep(50 * time.Millisecond)
	for _, j := range js {
		require.True(t, j.Stop())
		require.False(t, j.Stop())
	}
	require.Zero(t, s.Len())
	require.NoError(t, s.Shutdown(context.Background()))
	balanced(t, s.Stats())
}

// A run that panics, or ends its goroutine, does not end the series.
func TestJob_PanicAndGoexit(t *testing.T) {
	quiet := executor.WithPanicHandler(func(any, []byte) {})
	for name, e := range map[string]func() executor.Executor{
		"default":    func() executor.Executor { return nil },
		"inline":     func() executor.Executor { return executor.NewInline(quiet) },
		"goroutines": func() executor.Executor { return executor.NewGoroutines(quiet) },
		"pool of one": func() executor.Executor {
			return executor.NewPool(quiet, executor.WithMaxWorkers(1))
		},
	} {
		for mode, every := range map[string]func(s *timer.Scheduler, f func()) *timer.Job{
			"skip": func(s *timer.Scheduler, f func()) *timer.Job { return must(s.Every(time.Second, f)) },
			"burst": func(s *timer.Scheduler, f func()) *timer.Job {
				return must(s.Every(time.Second, f, timer.OnOverrun(timer.Burst)))
			},
			"delay": func(s *timer.Scheduler, f func()) *timer.Job {
				return must(s.Every(time.Second, f, timer.OnOverrun(timer.Delay)))
			},
			"fixed delay": func(s *timer.Scheduler, f func()) *timer.Job {
				return must(s.Every(time.Second, f, timer.FixedDelay()))
			},
			"schedule": func(s *timer.Scheduler, f func()) *timer.Job { return must(s.Repeat(everySecond, f)) },
		} {
			t.Run(name+"/"+mode, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					opts := []timer.Option{timer.WithExecutor(e())}
					if name == "default" {
						opts = append(opts, timer.WithPanicHandler(func(any, []byte) {}))
					}
					s := timer.New(opts...)
					n := 0
					j := every(s, func() {
						n++
						switch n % 3 {
						case 0:
							panic("oops")
						case 1:
							runtime.Goexit()
						}
					})
					time.Sleep(10*time.Second + 500*time.Millisecond)
					require.True(t, j.Stop())
					require.NoError(t, s.Shutdown(context.Background()))
					require.Equal(t, 10, n)
				})
			})
		}
	}
}

func TestJob_StopFromInside(t *testing.T) {
	for _, opts := range [][]timer.EveryOption{nil, {timer.OnOverrun(timer.Burst)}, {timer.OnOverrun(timer.Delay)}, {timer.FixedDelay()}} {
		s, clk := virtual(t)
		n := 0
		var j *timer.Job
		j = must(s.Every(time.Second, func() {
			if n++; n == 3 {
				require.True(t, j.Stop())
				require.False(t, j.Stop())
				require.Zero(t, j.Next())
			}
		}, opts...))
		clk.Advance(time.Hour)
		require.Equal(t, 3, n)
		require.False(t, j.Stop())
		require.Zero(t, s.Len())
		balanced(t, s.Stats())
	}
}

// A Stop while a run is under way does not wait for it, and there is no other,
// also if some are owed.
func TestJob_StopDuringARun(t *testing.T) {
	for name, opts := range map[string][]timer.EveryOption{
		"skip": nil, "burst": {timer.OnOverrun(timer.Burst)}, "delay": {timer.OnOverrun(timer.Delay)}, "fixed delay": {timer.FixedDelay()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := timer.New()
				n := 0
				j := must(s.Every(time.Second, func() { n++; time.Sleep(10 * time.Second) }, opts...))
				time.Sleep(5 * time.Second)
				before := time.Now()
				require.True(t, j.Stop())
				require.Equal(t, before, time.Now(), "it waited")
				require.Zero(t, s.Len())
				time.Sleep(time.Hour)
				require.False(t, j.Stop())
				require.NoError(t, s.Shutdown(context.Background()))
				require.Equal(t, 1, n)
			})
		})
	}
}

// A run that the executor has, but has not begun, is called off too.
func TestJob_StopBeforeTheRunBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New(timer.WithExecutor(executor.NewPool(executor.WithMaxWorkers(1))))
		start(t, s, time.Second, func() { time.Sleep(time.Minute) })
		j := must(s.Every(2*time.Second, func() { t.Error("ran after Stop") }))
		time.Sleep(10 * time.Second)
		require.True(t, j.Stop())
		require.NoError(t, s.Shutdown(context.Background()))
	})
}

// Of many Stops one reports true; none from the one that reports true on.
func TestJob_StopRace(t *testing.T) {
	s := timer.New(timer.WithTick(time.Microsecond))
	for range 100 {
		var stopped atomic.Bool
		var late, trues atomic.Int64
		j := must(s.Every(time.Microsecond, func() {
			if stopped.Load() {
				late.Inc()
			}
			runtime.Gosched()
		}, timer.OnOverrun(timer.Burst)))
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if j.Stop() {
					stopped.Store(true)
					trues.Inc()
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, trues.Load())
		// The one run that was under way may have looked after.
		require.LessOrEqual(t, late.Load(), int64(1))
	}
	require.NoError(t, s.Shutdown(context.Background()))
	balanced(t, s.Stats())
}

// byHand is an executor whose callbacks the test runs.
type byHand struct {
	waiting []func()
	refuse  bool
	// oneIn has it refuse one in so many, if it is not 0.
	oneIn, seen int
}

func (e *byHand) Submit(f func()) error {
	e.seen++
	if e.refuse || e.oneIn > 0 && e.seen%e.oneIn == 0 {
		return errors.New("full")
	}
	e.waiting = append(e.waiting, f)
	return nil
}

func (e *byHand) SubmitBatch(fs []func()) (n int, err error) {
	for _, f := range fs {
		if err = e.Submit(f); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func (e *byHand) Shutdown(context.Context) error { return nil }

// run runs the first n that wait.
func (e *byHand) run(n int) {
	fs := e.waiting[:n]
	e.waiting = e.waiting[n:]
	for _, f := range fs {
		f()
	}
}

// A run that waits in the executor is not submitted again, however many
// occurrences come and whatever else the executor refuses.
func TestJob_WaitsInTheExecutor(t *testing.T) {
	for name, opts := range map[string][]timer.EveryOption{"skip": nil, "delay": {timer.OnOverrun(timer.Delay)}, "fixed delay": {timer.FixedDelay()}} {
		e := new(byHand)
		s, clk := virtual(t, timer.WithExecutor(e))
		n := 0
		s.Every(time.Second, func() { n++ }, opts...)
		clk.Advance(10*time.Second + 500*time.Millisecond)
		require.Len(t, e.waiting, 1, name)
		e.refuse = true
		start(t, s, 0, func() {})
		clk.Advance(0)
		e.refuse = false
		clk.Advance(10 * time.Second)
		require.Len(t, e.waiting, 1, "%s: it was not this one that was refused", name)
		e.run(1)
		require.Equal(t, 1, n, name)
		clk.Advance(time.Second)
		require.Len(t, e.waiting, 1, name)
		e.run(1)
		require.Equal(t, 2, n, name)
		balanced(t, s.Stats())
	}
}

// An executor that is overloaded is not given more of the same: Jobs whose
// callbacks wait, or were refused, have one there at most.
func TestJob_OneCallbackQueued(t *testing.T) {
	for _, oneIn := range []int{5, 100} {
		e := &byHand{oneIn: oneIn}
		s, clk := virtual(t, timer.WithExecutor(e))
		rng := newRand(t)
		var jobs []*timer.Job
		runs := make([]int, 72)
		for len(jobs) < len(runs) {
			for _, opts := range [][]timer.EveryOption{
				nil, {timer.OnOverrun(timer.Burst)}, {timer.OnOverrun(timer.Delay)}, {timer.FixedDelay()}, {timer.FirstAfter(0)},
			} {
				i := len(jobs)
				jobs = append(jobs, must(s.Every(time.Millisecond, func() { runs[i]++ }, opts...)))
			}
			i := len(jobs)
			jobs = append(jobs, must(s.Repeat(each(10*time.Millisecond), func() { runs[i]++ })))
		}
		for range 4000 {
			clk.Advance(time.Millisecond)
			require.LessOrEqual(t, len(e.waiting), len(jobs))
			if rng.IntN(10) == 0 {
				e.run(rng.IntN(1 + len(e.waiting)))
			}
			if rng.IntN(100) == 0 {
				start(t, s, 0, func() {})
				clk.Advance(0)
				e.run(len(e.waiting))
			}
		}
		for i, n := range runs {
			// One with a Schedule tries again after a minute.
			require.True(t, n > 0 || i%6 == 5, "Job %d", i)
		}
		clk.Advance(time.Second)
		for _, j := range jobs {
			require.True(t, j.Stop())
		}
		before := slices.Clone(runs)
		clk.Advance(time.Minute)
		require.LessOrEqual(t, len(e.waiting), len(jobs))
		e.run(len(e.waiting))
		require.Equal(t, before, runs, "stopped")
		require.Empty(t, e.waiting)
		require.NoError(t, s.Shutdown(t.Context()))
		balanced(t, s.Stats())
	}
}

// Occurrences that the process could not see to while a run was under way are
// owed too.
func TestEvery_PauseDuringARun(t *testing.T) {
	for name, c := range map[string]struct {
		opts []timer.EveryOption
		want int
	}{
		"skip":        {nil, 1},
		"burst":       {[]timer.EveryOption{timer.OnOverrun(timer.Burst)}, 11},
		"delay":       {[]timer.EveryOption{timer.OnOverrun(timer.Delay)}, 1},
		"fixed delay": {[]timer.EveryOption{timer.FixedDelay()}, 1},
	} {
		e := new(byHand)
		s, clk := newStoppable(t, timer.WithExecutor(e))
		n := 0
		s.Every(time.Second, func() { n++ }, c.opts...)
		clk.suspend(time.Second)
		clk.suspend(10*time.Second + 500*time.Millisecond)
		for len(e.waiting) > 0 {
			e.run(1)
			clk.suspend(0)
		}
		require.Equal(t, c.want, n, name)
		balanced(t, s.Stats())
	}
}

func TestJob_CloseAndShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		begin, runs := time.Now(), 0
		j := must(s.Every(time.Second, func() { runs++; time.Sleep(10 * time.Second) }, timer.OnOverrun(timer.Burst)))
		c := must(s.Repeat(everySecond, func() {}))
		other := must(s.Every(time.Hour, func() { runs += 100 }))
		time.Sleep(5*time.Second + 500*time.Millisecond)
		handed := closeAll(s)
		require.Len(t, handed, 3)
		require.False(t, j.Stop(), "it was handed back")
		require.False(t, c.Stop())
		require.Zero(t, j.Next())
		require.Zero(t, c.Next())
		require.Zero(t, other.Next())
		require.NoError(t, s.Shutdown(context.Background()))
		require.Equal(t, 11*time.Second, time.Since(begin), "it waits for the run that is under way")
		time.Sleep(time.Hour)
		require.Equal(t, 1, runs)
		handed[2].Func()
		require.Equal(t, 101, runs, "what is handed back is the function")
		balanced(t, s.Stats())

		_, err := s.Every(time.Second, func() { t.Error("ran") }, timer.FirstAfter(0))
		require.ErrorIs(t, err, timer.ErrClosed)
		_, err = s.Repeat(everySecond, func() { t.Error("ran") })
		require.ErrorIs(t, err, timer.ErrClosed)
		require.EqualValues(t, 2, s.Stats().Rejected)
	})
}

func TestEvery_Misuse(t *testing.T) {
	s, _ := virtual(t)
	for _, d := range []time.Duration{0, -1} {
		require.PanicsWithValue(t, "timer: non-positive interval for Every", func() { s.Every(d, func() {}) })
	}
	require.PanicsWithValue(t, "timer: Every with a nil func", func() { s.Every(1, nil) })
	for _, m := range []timer.Overrun{timer.Delay + 1, 99, 255} {
		require.PanicsWithValue(t, fmt.Sprintf("timer: OnOverrun: must be Skip, Burst or Delay, got %d", m), func() {
			s.Every(1, func() {}, timer.OnOverrun(m))
		})
	}
	require.PanicsWithValue(t, "timer: Repeat with a nil Schedule or func", func() { s.Repeat(nil, func() {}) })
	require.PanicsWithValue(t, "timer: Repeat with a nil Schedule or func", func() { s.Repeat(everySecond, nil) })
	require.Zero(t, s.Stats().Started)
}

func TestJob_Next(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		defer s.Close()
		begin := time.Now()
		next := func(j *timer.Job) string { return fmt.Sprint(j.Next().Sub(begin)) }
		rate := must(s.Every(time.Second, func() { time.Sleep(300 * time.Millisecond) }))
		time.Sleep(100 * time.Millisecond)
		delay := must(s.Every(time.Second, func() { time.Sleep(300 * time.Millisecond) }, timer.FixedDelay()))
		require.Equal(t, "1s 1.1s", next(rate)+" "+next(delay))
		time.Sleep(1400 * time.Millisecond)
		require.Equal(t, "2s 2.4s", next(rate)+" "+next(delay))
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, "3s", next(rate))
		rate.Stop()
		delay.Stop()
		require.Zero(t, rate.Next())
		time.Sleep(time.Second) // for the run that was under way
	})
}
