package jobs_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/jobs"
	"github.com/tickless/tickless/timer"
)

// Tests of StopWait, RunNow, Pause and Resume.

func TestJob_StopWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		defer s.Close()
		begin := time.Now()
		ended := false
		j := must(jobs.Periodic(s, time.Second, func() {
			time.Sleep(10 * time.Second)
			ended = true
		}))
		time.Sleep(2 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		require.ErrorIs(t, j.StopWait(ctx), context.DeadlineExceeded)
		require.Equal(t, 5*time.Second, time.Since(begin))
		require.NoError(t, j.StopWait(t.Context()))
		require.Equal(t, 11*time.Second, time.Since(begin))
		require.True(t, ended)
		require.NoError(t, j.StopWait(ctx), "the series is over, so the context does not matter")
		require.False(t, j.Stop())

		// A job that waits, a job in its last run, and a job without occurrences.
		require.NoError(t, must(jobs.Periodic(s, time.Second, func() {})).StopWait(t.Context()))
		last := must(jobs.Calendar(s, jobs.At(time.Now().Add(time.Second)), func() { time.Sleep(time.Minute) }))
		time.Sleep(2 * time.Second)
		require.NoError(t, last.StopWait(t.Context()))
		require.Equal(t, 72*time.Second, time.Since(begin))
		require.NoError(t, must(jobs.Calendar(s, at(), func() {})).StopWait(t.Context()))
	})
}

func TestJob_StopWaitFromInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		var j *jobs.Job
		var err error
		made := make(chan struct{})
		j = must(jobs.Periodic(s, time.Second, func() {
			<-made
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			err = j.StopWait(ctx)
		}))
		close(made)
		time.Sleep(time.Minute)
		require.NoError(t, j.StopWait(t.Context()))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, s.Shutdown(t.Context()))
	})
}

func TestJob_RunNow(t *testing.T) {
	for name, make := range map[string]func(*timer.Scheduler, func()) (*jobs.Job, error){
		"Periodic": func(s *timer.Scheduler, f func()) (*jobs.Job, error) { return jobs.Periodic(s, time.Minute, f) },
		"Calendar": func(s *timer.Scheduler, f func()) (*jobs.Job, error) { return jobs.Calendar(s, each(time.Minute), f) },
	} {
		s, clk := virtual(t)
		var runs []time.Duration
		j := must(make(s, func() { runs = append(runs, clk.Now().Sub(epoch)) }))
		clk.Advance(10 * time.Second)
		require.True(t, j.RunNow())
		require.True(t, j.RunNow(), "both calls share one run")
		require.Empty(t, runs, "f ran inside RunNow")
		clk.Advance(0)
		require.Equal(t, seconds(10), runs, name)
		require.Equal(t, epoch.Add(time.Minute), j.Next(), "RunNow does not change the series")
		clk.Advance(2 * time.Minute)
		require.Equal(t, seconds(10, 60, 120), runs, name)
		require.True(t, j.RunNow())
		require.True(t, j.Stop())
		require.False(t, j.RunNow())
		clk.Advance(time.Hour)
		require.Equal(t, seconds(10, 60, 120), runs, "%s: stopped before it began", name)
		balanced(t, s.Stats())
	}
}

// RunNow is called after the timer has fired, but before its callback runs. So the
// executor gets two callbacks. The test runs the second one during the first.
func TestJob_TwoCallbacksOnTheirWay(t *testing.T) {
	e := new(byHand)
	s, clk := virtual(t, timer.WithExecutor(e))
	running, runs := 0, 0
	j := must(jobs.Periodic(s, time.Second, func() {
		running++
		require.Equal(t, 1, running, "two runs at once")
		if runs++; runs == 1 {
			e.run(len(e.waiting))
			clk.Advance(2 * time.Second) // too late for the occurrences of these seconds
			e.run(len(e.waiting))
		}
		running--
	}))
	clk.Advance(time.Second)
	require.True(t, j.RunNow())
	clk.Advance(0)
	require.Len(t, e.waiting, 2)
	e.run(1)
	require.Equal(t, 1, runs, "one run for the occurrence and for RunNow")
	clk.Advance(time.Second)
	e.run(1)
	require.Equal(t, 2, runs, "the series goes on")
	require.Equal(t, 1, s.Len())
}

// A RunNow during a run makes another run after it.
func TestJob_RunNowDuringARun(t *testing.T) {
	for name, opts := range map[string][]jobs.Option{"fixed rate": nil, "fixed delay": {jobs.FixedDelay()}} {
		synctest.Test(t, func(t *testing.T) {
			s := timer.New()
			begin := time.Now()
			var runs []time.Duration
			var j *jobs.Job
			made := make(chan struct{})
			j = must(jobs.Periodic(s, 10*time.Second, func() {
				<-made
				runs = append(runs, time.Since(begin))
				if len(runs) == 1 {
					j.RunNow()
				}
				time.Sleep(4 * time.Second)
			}, opts...))
			close(made)
			time.Sleep(35 * time.Second)
			require.NoError(t, j.StopWait(t.Context()))
			require.NoError(t, s.Shutdown(t.Context()))
			if opts == nil {
				require.Equal(t, seconds(10, 14, 20, 30), runs, name)
			} else {
				require.Equal(t, seconds(10, 14, 28), runs, name)
			}
		})
	}
}

func TestJob_PauseAndResume(t *testing.T) {
	for name, c := range map[string]struct {
		opts []jobs.Option
		want []time.Duration
	}{
		"skip":        {nil, seconds(10, 60, 70)},
		"burst":       {[]jobs.Option{jobs.OnOverrun(jobs.Burst)}, seconds(10, 60, 70)},
		"delay":       {[]jobs.Option{jobs.OnOverrun(jobs.Delay)}, seconds(10, 60, 70)},
		"fixed delay": {[]jobs.Option{jobs.FixedDelay()}, seconds(10, 65, 75)},
	} {
		s, clk := virtual(t)
		var runs []time.Duration
		j := must(jobs.Periodic(s, 10*time.Second, func() { runs = append(runs, clk.Now().Sub(epoch)) }, c.opts...))
		clk.Advance(15 * time.Second)
		require.False(t, j.Resume())
		require.True(t, j.Pause())
		require.False(t, j.Pause())
		require.Zero(t, j.Next())
		require.Zero(t, s.Len(), "a paused job has no timer")
		clk.Advance(40 * time.Second)
		require.True(t, j.Resume())
		clk.Advance(20 * time.Second)
		require.Equal(t, c.want, runs, name)
		require.True(t, j.Pause())
		require.True(t, j.Stop())
		require.False(t, j.Resume())
		clk.Advance(time.Hour)
		require.Equal(t, c.want, runs, name)
		balanced(t, s.Stats())
	}
}

func TestJob_PauseOfACalendar(t *testing.T) {
	s, clk := virtual(t)
	var runs []time.Duration
	j := must(jobs.Calendar(s, each(time.Minute), func() { runs = append(runs, clk.Now().Sub(epoch)) }))
	clk.Advance(90 * time.Second)
	require.True(t, j.Pause())
	clk.Advance(time.Hour)
	require.True(t, j.RunNow())
	clk.Advance(0)
	require.Equal(t, seconds(60, 3690), runs)
	require.True(t, j.Resume())
	require.Equal(t, epoch.Add(62*time.Minute), j.Next())
	clk.Advance(time.Minute)
	require.Equal(t, seconds(60, 3690, 3720), runs)
	balanced(t, s.Stats())
}

// If a job is paused and resumed during a run, the series continues.
func TestJob_PauseDuringARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		defer s.Close()
		begin := time.Now()
		var runs []time.Duration
		j := must(jobs.Periodic(s, 10*time.Second, func() {
			runs = append(runs, time.Since(begin))
			time.Sleep(3 * time.Second)
		}))
		time.Sleep(11 * time.Second)
		require.True(t, j.Pause())
		time.Sleep(time.Second)
		require.True(t, j.Resume()) // at 12 s; the run ends at 13 s
		time.Sleep(10 * time.Second)
		require.True(t, j.Pause()) // at 22 s
		time.Sleep(30 * time.Second)
		require.True(t, j.Resume()) // at 52 s
		time.Sleep(13 * time.Second)
		require.NoError(t, j.StopWait(t.Context()))
		require.Equal(t, seconds(10, 20, 60), runs)
	})
}

// Many goroutines call all methods at once. Runs never overlap, and none begins after the
// series has ended.
func TestJob_ControlStress(t *testing.T) {
	for _, opts := range [][]jobs.Option{nil, {jobs.OnOverrun(jobs.Burst)}, {jobs.OnOverrun(jobs.Delay)}, {jobs.FixedDelay()}} {
		s := timer.New(timer.WithTick(time.Microsecond))
		var running, runs atomic.Int32
		j := must(jobs.Periodic(s, 50*time.Microsecond, func() {
			if running.Inc() != 1 {
				t.Error("two runs at once")
			}
			runs.Inc()
			running.Dec()
		}, opts...))
		done := make(chan struct{})
		for _, f := range []func(){func() { j.Pause() }, func() { j.Resume() }, func() { j.RunNow() }, func() { j.Next() }} {
			go func() {
				defer func() { done <- struct{}{} }()
				for range 2000 {
					f()
				}
			}()
		}
		for range 4 {
			<-done
		}
		j.Resume()
		before := runs.Load()
		require.Eventually(t, func() bool { return runs.Load() > before+3 }, time.Minute, time.Millisecond, "the series goes on")
		require.NoError(t, j.StopWait(t.Context()))
		after := runs.Load()
		require.Zero(t, s.Len())
		require.NoError(t, s.Shutdown(t.Context()))
		require.Equal(t, after, runs.Load())
		balanced(t, s.Stats())
	}
}

// If the Scheduler is closed during a run, the series ends with that run, and StopWait
// returns.
func TestJob_ClosedDuringARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		j := must(jobs.Periodic(s, time.Second, func() { time.Sleep(time.Minute) }))
		time.Sleep(2 * time.Second)
		s.Close()
		require.NoError(t, s.Shutdown(t.Context()))
		require.False(t, j.Stop())
		require.False(t, j.RunNow())
		require.Zero(t, j.Next())
		require.NoError(t, j.StopWait(t.Context()))
	})
}
