package jobs_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/jobs"
	"github.com/tickless/tickless/timer"
)

// seconds returns durations of the given numbers of seconds.
func seconds(fs ...float64) []time.Duration {
	ds := make([]time.Duration, len(fs))
	for i, f := range fs {
		ds[i] = time.Duration(math.Round(f * float64(time.Second)))
	}
	return ds
}

func TestPeriodic_FixedRate(t *testing.T) {
	for _, period := range []time.Duration{time.Second, 333 * time.Millisecond, 90 * time.Minute} {
		s, clk := virtual(t)
		n := 0
		j := must(jobs.Periodic(s, period, func() {
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

// The period is not a multiple of the tick. Each run is less than a tick late, and the
// delays do not add up.
func TestPeriodic_DoesNotDriftByTheTick(t *testing.T) {
	s, clk := virtual(t, timer.WithTick(time.Millisecond))
	n := 0
	jobs.Periodic(s, 1300*time.Microsecond, func() {
		n++
		late := clk.Now().Sub(epoch) - time.Duration(n)*1300*time.Microsecond
		require.GreaterOrEqual(t, late, time.Duration(0))
		require.Less(t, late, time.Millisecond)
	})
	clk.Advance(1300 * time.Millisecond)
	require.Equal(t, 1000, n)
}

func TestPeriodic_FirstAfter(t *testing.T) {
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
		jobs.Periodic(s, time.Second, func() {
			require.False(t, inside, "f ran inside Periodic")
			at = append(at, clk.Now().Sub(epoch))
		}, jobs.FirstAfter(c.first))
		inside = false
		clk.Advance(3500 * time.Millisecond)
		require.Equal(t, c.want, at, "FirstAfter(%v)", c.first)
		balanced(t, s.Stats())
	}
	s, clk := virtual(t)
	jobs.Periodic(s, math.MaxInt64, func() { t.Error("ran") })
	clk.Advance(250 * 365 * 24 * time.Hour)
	require.Equal(t, 1, s.Len())
}

// The first run takes 2.5 periods, the others no time.
func TestPeriodic_OverlongRun(t *testing.T) {
	for name, c := range map[string]struct {
		opts []jobs.Option
		want []time.Duration
	}{
		"skip is the default": {nil, seconds(1, 4, 5, 6)},
		"skip":                {[]jobs.Option{jobs.OnOverrun(jobs.Skip)}, seconds(1, 4, 5, 6)},
		"burst":               {[]jobs.Option{jobs.OnOverrun(jobs.Burst)}, seconds(1, 3.5, 3.5, 4, 5, 6)},
		"delay":               {[]jobs.Option{jobs.OnOverrun(jobs.Delay)}, seconds(1, 3.5, 4.5, 5.5)},
		"fixed delay":         {[]jobs.Option{jobs.FixedDelay()}, seconds(1, 4.5, 5.5)},
		"fixed delay, burst":  {[]jobs.Option{jobs.OnOverrun(jobs.Burst), jobs.FixedDelay()}, seconds(1, 4.5, 5.5)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := timer.New()
				begin := time.Now()
				var at []time.Duration
				jobs.Periodic(s, time.Second, func() {
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

// The whole process is suspended, so that everything is late at once.
func TestPeriodic_Pause(t *testing.T) {
	for name, c := range map[string]struct {
		opts []jobs.Option
		want []time.Duration
	}{
		"skip":        {nil, seconds(1, 11.5, 12, 13)},
		"burst":       {[]jobs.Option{jobs.OnOverrun(jobs.Burst)}, seconds(1, 11.5, 11.5, 11.5, 11.5, 11.5, 11.5, 11.5, 11.5, 11.5, 11.5, 12, 13)},
		"delay":       {[]jobs.Option{jobs.OnOverrun(jobs.Delay)}, seconds(1, 11.5, 12.5, 13.5)},
		"fixed delay": {[]jobs.Option{jobs.FixedDelay()}, seconds(1, 11.5, 12.5, 13.5)},
	} {
		s, clk := virtual(t)
		var at []time.Duration
		jobs.Periodic(s, time.Second, func() { at = append(at, clk.Now().Sub(epoch)) }, c.opts...)
		clk.Suspend(time.Second)
		clk.Suspend(10*time.Second + 500*time.Millisecond)
		for range 20 {
			clk.Suspend(100 * time.Millisecond)
		}
		require.Equal(t, c.want, at, name)
		balanced(t, s.Stats())
	}
}

// Runs of random lengths must come at the times that the documentation promises.
func TestPeriodic_Model(t *testing.T) {
	rng := newRand(t)
	const period = 100
	for name, opts := range map[string][]jobs.Option{
		"skip":        {jobs.OnOverrun(jobs.Skip)},
		"burst":       {jobs.OnOverrun(jobs.Burst)},
		"delay":       {jobs.OnOverrun(jobs.Delay)},
		"fixed delay": {jobs.FixedDelay()},
	} {
		for range 50 {
			first := time.Duration(rng.IntN(250))
			takes := make([]time.Duration, 30)
			for i := range takes {
				takes[i] = time.Duration(rng.IntN(90))
				if rng.IntN(3) == 0 {
					takes[i] = time.Duration(rng.IntN(400))
				}
				// An odd length, so that a run never ends at the moment of an
				// occurrence.
				takes[i] = takes[i]*2 + 1
			}
			// All other durations are even.
			first *= 2
			const period = 2 * period
			want := expectedRuns(name, first, period, takes)
			synctest.Test(t, func(t *testing.T) {
				s := timer.New(timer.WithTick(1))
				begin := time.Now()
				var got []time.Duration
				var j *jobs.Job
				end := make(chan struct{})
				ready := make(chan struct{})
				j = must(jobs.Periodic(s, period, func() {
					<-ready
					i := len(got)
					got = append(got, time.Since(begin))
					if i+1 == len(takes) {
						require.True(t, j.Stop())
						close(end)
						return
					}
					time.Sleep(takes[i])
				}, append(opts, jobs.FirstAfter(first))...))
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

// As in the JDK's ScheduledThreadPoolExecutor, runs of one job never overlap, however
// long they take and on whatever executor they run.
func TestPeriodic_RunsNeverOverlap(t *testing.T) {
	for name, e := range executors() {
		for mode, opts := range map[string][]jobs.Option{
			"skip":        nil,
			"burst":       {jobs.OnOverrun(jobs.Burst)},
			"delay":       {jobs.OnOverrun(jobs.Delay)},
			"fixed delay": {jobs.FixedDelay()},
		} {
			t.Run(name+"/"+mode, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					rng := rand.New(rand.NewPCG(1, 2))
					s := timer.New(timer.WithExecutor(e()))
					var running, runs atomic.Int64
					last := -1 // for the race detector
					jobs.Periodic(s, time.Millisecond, func() {
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

// The race detector finds overlapping runs of one job, on the system's clock.
func TestPeriodic_RunsNeverOverlap_Race(t *testing.T) {
	s := timer.New(timer.WithTick(time.Microsecond))
	var js []*jobs.Job
	for i := range 8 {
		last := 0
		js = append(js, must(jobs.Periodic(s, time.Duration(1+i*20)*time.Microsecond, func() {
			last++
			for spin := last % 1000; spin > 0; spin-- {
			}
		}, jobs.OnOverrun(jobs.Overrun(i%3)))))
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

// A run that panics or ends its goroutine does not end the series.
func TestJob_PanicAndGoexit(t *testing.T) {
	quiet := executor.WithPanicHandler(func(any, []byte) {})
	for name, e := range map[string]func() executor.Executor{
		"default":    func() executor.Executor { return nil },
		"inline":     func() executor.Executor { return executor.NewInline(quiet) },
		"goroutines": func() executor.Executor { return executor.NewGoroutines(quiet) },
		"pool":       func() executor.Executor { return executor.NewPool(quiet) },
	} {
		for mode, every := range map[string]func(s *timer.Scheduler, f func()) *jobs.Job{
			"skip": func(s *timer.Scheduler, f func()) *jobs.Job { return must(jobs.Periodic(s, time.Second, f)) },
			"burst": func(s *timer.Scheduler, f func()) *jobs.Job {
				return must(jobs.Periodic(s, time.Second, f, jobs.OnOverrun(jobs.Burst)))
			},
			"delay": func(s *timer.Scheduler, f func()) *jobs.Job {
				return must(jobs.Periodic(s, time.Second, f, jobs.OnOverrun(jobs.Delay)))
			},
			"fixed delay": func(s *timer.Scheduler, f func()) *jobs.Job {
				return must(jobs.Periodic(s, time.Second, f, jobs.FixedDelay()))
			},
			"schedule": func(s *timer.Scheduler, f func()) *jobs.Job { return must(jobs.Calendar(s, everySecond, f)) },
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
	for _, opts := range [][]jobs.Option{nil, {jobs.OnOverrun(jobs.Burst)}, {jobs.OnOverrun(jobs.Delay)}, {jobs.FixedDelay()}} {
		s, clk := virtual(t)
		n := 0
		var j *jobs.Job
		j = must(jobs.Periodic(s, time.Second, func() {
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

// Stop during a run does not wait for the run. No further run begins, even if occurrences
// are pending.
func TestJob_StopDuringARun(t *testing.T) {
	for name, opts := range map[string][]jobs.Option{
		"skip": nil, "burst": {jobs.OnOverrun(jobs.Burst)}, "delay": {jobs.OnOverrun(jobs.Delay)}, "fixed delay": {jobs.FixedDelay()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := timer.New()
				n := 0
				j := must(jobs.Periodic(s, time.Second, func() { n++; time.Sleep(10 * time.Second) }, opts...))
				time.Sleep(5 * time.Second)
				before := time.Now()
				require.True(t, j.Stop())
				require.Equal(t, before, time.Now(), "Stop waited for the run")
				require.Zero(t, s.Len())
				time.Sleep(time.Hour)
				require.False(t, j.Stop())
				require.NoError(t, s.Shutdown(context.Background()))
				require.Equal(t, 1, n)
			})
		})
	}
}

// Stop also cancels a run that the executor has accepted and not begun.
func TestJob_StopBeforeTheRunBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New(timer.WithExecutor(executor.NewPool(executor.WithMaxWorkers(1))))
		must(s.Start(time.Second, func() { time.Sleep(time.Minute) }))
		j := must(jobs.Periodic(s, 2*time.Second, func() { t.Error("ran after Stop") }))
		time.Sleep(10 * time.Second)
		require.True(t, j.Stop())
		require.NoError(t, s.Shutdown(context.Background()))
	})
}

// Of several concurrent Stops exactly one returns true. No run begins after that Stop has
// returned.
func TestJob_StopRace(t *testing.T) {
	s := timer.New(timer.WithTick(time.Microsecond))
	for range 100 {
		var stopped atomic.Bool
		var late, trues atomic.Int64
		j := must(jobs.Periodic(s, time.Microsecond, func() {
			if stopped.Load() {
				late.Inc()
			}
			runtime.Gosched()
		}, jobs.OnOverrun(jobs.Burst)))
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
		// One run that was in progress at Stop may count as late.
		require.LessOrEqual(t, late.Load(), int64(1))
	}
	require.NoError(t, s.Shutdown(context.Background()))
	balanced(t, s.Stats())
}

// byHand is an executor that queues callbacks for the test to run.
type byHand struct {
	waiting []func()
}

func (e *byHand) Submit(f func()) error {
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

// run runs the first n queued callbacks.
func (e *byHand) run(n int) {
	fs := e.waiting[:n]
	e.waiting = e.waiting[n:]
	for _, f := range fs {
		f()
	}
}

// While a run waits in the executor, it is not submitted again, however many occurrences
// come.
func TestJob_WaitsInTheExecutor(t *testing.T) {
	for name, opts := range map[string][]jobs.Option{"skip": nil, "delay": {jobs.OnOverrun(jobs.Delay)}, "fixed delay": {jobs.FixedDelay()}} {
		e := new(byHand)
		s, clk := virtual(t, timer.WithExecutor(e))
		n := 0
		jobs.Periodic(s, time.Second, func() { n++ }, opts...)
		clk.Advance(10*time.Second + 500*time.Millisecond)
		require.Len(t, e.waiting, 1, name)
		clk.Advance(10 * time.Second)
		require.Len(t, e.waiting, 1, name)
		e.run(1)
		require.Equal(t, 1, n, name)
		clk.Advance(time.Second)
		require.Len(t, e.waiting, 1, name)
		e.run(1)
		require.Equal(t, 2, n, name)
		balanced(t, s.Stats())
	}
}

// With Burst, the job also makes up for occurrences that the process missed during a
// run.
func TestPeriodic_PauseDuringARun(t *testing.T) {
	for name, c := range map[string]struct {
		opts []jobs.Option
		want int
	}{
		"skip":        {nil, 1},
		"burst":       {[]jobs.Option{jobs.OnOverrun(jobs.Burst)}, 11},
		"delay":       {[]jobs.Option{jobs.OnOverrun(jobs.Delay)}, 1},
		"fixed delay": {[]jobs.Option{jobs.FixedDelay()}, 1},
	} {
		e := new(byHand)
		s, clk := virtual(t, timer.WithExecutor(e))
		n := 0
		jobs.Periodic(s, time.Second, func() { n++ }, c.opts...)
		clk.Suspend(time.Second)
		clk.Suspend(10*time.Second + 500*time.Millisecond)
		for len(e.waiting) > 0 {
			e.run(1)
			clk.Suspend(0)
		}
		require.Equal(t, c.want, n, name)
		balanced(t, s.Stats())
	}
}

func TestJob_CloseAndShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		begin, runs := time.Now(), atomic.NewInt64(0)
		j := must(jobs.Periodic(s, time.Second, func() { runs.Inc(); time.Sleep(10 * time.Second) }, jobs.OnOverrun(jobs.Burst)))
		c := must(jobs.Calendar(s, everySecond, func() { runs.Add(100) }))
		must(jobs.Periodic(s, time.Hour, func() { runs.Add(1000) }))
		time.Sleep(5*time.Second + 500*time.Millisecond)
		handed := closeAll(s)
		require.Len(t, handed, 2)
		require.NoError(t, s.Shutdown(context.Background()))
		require.Equal(t, 11*time.Second, time.Since(begin), "Shutdown waits for the run in progress")
		time.Sleep(time.Hour)
		require.EqualValues(t, 501, runs.Load())
		require.Zero(t, j.Next(), "the run in progress was the last")
		require.False(t, j.Stop())
		require.True(t, c.Stop())
		balanced(t, s.Stats())

		_, err := jobs.Periodic(s, time.Second, func() { t.Error("ran") }, jobs.FirstAfter(0))
		require.ErrorIs(t, err, timer.ErrClosed)
		_, err = jobs.Calendar(s, everySecond, func() { t.Error("ran") })
		require.ErrorIs(t, err, timer.ErrClosed)
	})
}

// A waiting job counts as one pending timer. If other timers reach the limit during a
// run, the series still continues.
func TestJob_MaxPending(t *testing.T) {
	s, clk := virtual(t, timer.WithMaxPending(2))
	n := 0
	var filler timer.Handle
	fill := func() {
		if h, err := s.Start(10*time.Second, func() {}); err == nil {
			filler = h
		}
		n++
	}
	js := []*jobs.Job{
		must(jobs.Periodic(s, time.Second, fill)),
		must(jobs.Calendar(s, everySecond, func() { n++ })),
	}
	_, err := jobs.Periodic(s, time.Second, func() { t.Error("ran") })
	require.ErrorIs(t, err, timer.ErrTooManyPending)
	_, err = jobs.Calendar(s, everySecond, func() { t.Error("ran") })
	require.ErrorIs(t, err, timer.ErrTooManyPending)
	clk.Advance(5 * time.Second)
	require.Equal(t, 10, n)
	require.True(t, filler.Stop(), "the filler is pending")
	clk.Advance(5 * time.Second)
	require.Equal(t, 20, n)
	for _, j := range js {
		require.True(t, j.Stop())
	}
	filler.Stop()
	clk.Advance(time.Minute)
	require.Equal(t, 20, n)
	require.Zero(t, s.Len())
	balanced(t, s.Stats())
}

func TestPeriodic_Misuse(t *testing.T) {
	s, _ := virtual(t)
	for _, d := range []time.Duration{0, -1} {
		require.PanicsWithValue(t, fmt.Sprintf("jobs: Periodic: the period must be positive, got %v", d), func() { jobs.Periodic(s, d, func() {}) })
	}
	require.PanicsWithValue(t, "jobs: Periodic with a nil Scheduler or func", func() { jobs.Periodic(s, 1, nil) })
	for _, m := range []jobs.Overrun{jobs.Delay + 1, 99, 255} {
		require.PanicsWithValue(t, fmt.Sprintf("jobs: OnOverrun: must be Skip, Burst or Delay, got %d", m), func() {
			jobs.Periodic(s, 1, func() {}, jobs.OnOverrun(m))
		})
	}
	require.PanicsWithValue(t, "jobs: Calendar with a nil Scheduler, Schedule or func", func() { jobs.Calendar(s, nil, func() {}) })
	require.PanicsWithValue(t, "jobs: Calendar with a nil Scheduler, Schedule or func", func() { jobs.Calendar(s, everySecond, nil) })
	require.Zero(t, s.Stats().Started)
}

func TestJob_Next(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		defer s.Close()
		begin := time.Now()
		next := func(j *jobs.Job) string { return fmt.Sprint(j.Next().Sub(begin)) }
		rate := must(jobs.Periodic(s, time.Second, func() { time.Sleep(300 * time.Millisecond) }))
		time.Sleep(100 * time.Millisecond)
		delay := must(jobs.Periodic(s, time.Second, func() { time.Sleep(300 * time.Millisecond) }, jobs.FixedDelay()))
		require.Equal(t, "1s 1.1s", next(rate)+" "+next(delay))
		time.Sleep(1400 * time.Millisecond)
		require.Equal(t, "2s 2.4s", next(rate)+" "+next(delay))
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, "3s", next(rate))
		rate.Stop()
		delay.Stop()
		require.Zero(t, rate.Next())
		time.Sleep(time.Second) // for the run in progress
	})
}
