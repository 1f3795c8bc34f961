package jobs_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/jobs"
	"github.com/tickless/tickless/timer"
)

type scheduleFunc func(time.Time) time.Time

func (f scheduleFunc) Next(t time.Time) time.Time { return f(t) }

// each returns a Schedule of all multiples of d.
func each(d time.Duration) jobs.Schedule {
	return scheduleFunc(func(t time.Time) time.Time { return t.Truncate(d).Add(d) })
}

var everySecond = each(time.Second)

// at returns a Schedule of the given times.
func at(times ...time.Time) jobs.Schedule {
	return scheduleFunc(func(t time.Time) time.Time {
		for _, n := range times {
			if n.After(t) {
				return n
			}
		}
		return time.Time{}
	})
}

func TestCalendar(t *testing.T) {
	s, clk := virtual(t)
	clk.Advance(17 * time.Second)
	var runs []time.Time
	j := must(jobs.Calendar(s, each(time.Minute), func() { runs = append(runs, clk.Now()) }))
	require.Equal(t, epoch.Add(time.Minute), j.Next())
	clk.AdvanceTo(epoch.Add(1000*time.Minute - 1))
	require.Len(t, runs, 999)
	for i, r := range runs {
		require.Equal(t, epoch.Add(time.Duration(i+1)*time.Minute), r)
	}
	require.Equal(t, epoch.Add(1000*time.Minute), j.Next())
	require.True(t, j.Stop())
	require.Zero(t, j.Next())
	require.Zero(t, s.Len())
	clk.Advance(time.Hour)
	require.Len(t, runs, 999)
	balanced(t, s.Stats())
}

// The job reads the wall clock between occurrences, and runs nothing.
func TestCalendar_FarApart(t *testing.T) {
	s, clk := virtual(t)
	a, b := epoch.Add(36*time.Hour+time.Second/3), epoch.Add(100*time.Hour)
	var runs []time.Time
	j := must(jobs.Calendar(s, at(a, b), func() { runs = append(runs, clk.Now()) }))
	clk.AdvanceTo(a.Add(-1))
	require.Empty(t, runs)
	require.Equal(t, a, j.Next())
	clk.AdvanceTo(a.Add(timer.DefaultTick))
	require.Len(t, runs, 1)
	require.Equal(t, b, j.Next())
	clk.AdvanceTo(b)
	require.Len(t, runs, 2)
	require.Equal(t, b, runs[1])
	require.Zero(t, j.Next(), "the schedule has ended")
	require.False(t, j.Stop())
	require.Zero(t, s.Len())
	balanced(t, s.Stats())
}

func TestCalendar_EndsWhenNextIsZero(t *testing.T) {
	s, clk := virtual(t)
	over := must(jobs.Calendar(s, at(), func() { t.Error("ran") }))
	require.False(t, over.Stop())
	require.Zero(t, over.Next())
	require.Zero(t, s.Stats().Started)

	n := 0
	var j *jobs.Job
	j = must(jobs.Calendar(s, at(epoch.Add(time.Second), epoch.Add(2*time.Second)), func() {
		if n++; n == 2 {
			require.Zero(t, j.Next(), "the series is over during the last run")
			require.False(t, j.Stop())
		}
	}))
	clk.Advance(time.Hour)
	require.Equal(t, 2, n, "the last occurrence runs")
	require.Zero(t, s.Len())
	wakeups := s.Stats().Wakeups
	clk.Advance(24 * time.Hour)
	require.Equal(t, wakeups, s.Stats().Wakeups)
	balanced(t, s.Stats())
}

// A bug of RussellLuo/timingwheel: a schedule whose first time was an hour ago ran
// 3,601 times in 100 ms.
func TestCalendar_RussellLuo_NextAnHourBack(t *testing.T) {
	s, clk := virtual(t)
	last := clk.Now().Add(-time.Hour)
	runs := 0
	// Each occurrence is a second after the previous one, as in RussellLuo's test.
	jobs.Calendar(s, scheduleFunc(func(time.Time) time.Time {
		last = last.Add(time.Second)
		return last
	}), func() { runs++ })
	clk.Advance(100 * time.Millisecond)
	require.Zero(t, runs)
	clk.Advance(10 * time.Second)
	require.Equal(t, 10, runs, "once a second")

	runs = 0
	first := true
	s, clk = virtual(t)
	jobs.Calendar(s, scheduleFunc(func(t time.Time) time.Time {
		if first {
			first = false
			return t.Add(-time.Hour)
		}
		return t.Add(time.Second)
	}), func() { runs++ })
	clk.Advance(time.Minute)
	require.Equal(t, 60, runs)
}

// The schedule is first called inside Calendar. Its calls never overlap, although each
// takes longer than the time between occurrences.
func TestCalendar_IsAskedByOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		var asking, asked, runs atomic.Int32
		j := must(jobs.Calendar(s, scheduleFunc(func(now time.Time) time.Time {
			require.EqualValues(t, 1, asking.Add(1))
			defer asking.Add(-1)
			asked.Add(1)
			time.Sleep(7 * time.Millisecond)
			return now.Truncate(time.Millisecond).Add(time.Millisecond)
		}), func() {
			runs.Add(1)
			time.Sleep(3 * time.Millisecond)
		}))
		require.NotZero(t, asked.Load(), "the schedule was called before Calendar returned") // the executor may have called it again
		time.Sleep(time.Second)
		require.True(t, j.Stop())
		require.Greater(t, runs.Load(), int32(50))
		require.NoError(t, s.Shutdown(t.Context()))
	})
}

func TestCalendar_NextThatIsNotAfter(t *testing.T) {
	for name, sched := range map[string]jobs.Schedule{
		"the same":        scheduleFunc(func(t time.Time) time.Time { return t }),
		"long ago":        scheduleFunc(func(t time.Time) time.Time { return time.Unix(0, 0) }),
		"year -1,000,000": scheduleFunc(func(t time.Time) time.Time { return t.AddDate(-1_000_000, 0, 0) }),
	} {
		s, clk := virtual(t)
		runs := 0
		j := must(jobs.Calendar(s, sched, func() { runs++ }))
		require.Equal(t, epoch.Add(time.Second), j.Next(), name)
		clk.Advance(time.Second - 1)
		require.Zero(t, runs, name)
		clk.Advance(time.Minute)
		require.Equal(t, 60, runs, name)
	}
}

func TestCalendar_FarNext(t *testing.T) {
	for name, next := range map[string]time.Time{
		"a million years":   epoch.AddDate(1_000_000, 0, 0),
		"the last duration": epoch.Add(1<<63 - 1),
		"the end":           time.Unix(1<<60, 0),
	} {
		s, clk := virtual(t)
		j := must(jobs.Calendar(s, at(next), func() { t.Errorf("%s: ran", name) }))
		require.True(t, next.Equal(j.Next()))
		clk.Advance(24 * time.Hour)
		require.True(t, next.Equal(j.Next()))
		require.True(t, j.Stop())
	}
}

func TestCalendar_NextPanics(t *testing.T) {
	s, _ := virtual(t)
	require.PanicsWithValue(t, "oops", func() {
		jobs.Calendar(s, scheduleFunc(func(time.Time) time.Time { panic("oops") }), func() {})
	})
	require.Zero(t, s.Len())

	panics, runs, broken := 0, 0, false
	s, clk := virtual(t, timer.WithPanicHandler(func(any, []byte) { panics++ }))
	j := must(jobs.Calendar(s, scheduleFunc(func(t time.Time) time.Time {
		if broken {
			panic("oops")
		}
		return everySecond.Next(t)
	}), func() { runs++ }))
	clk.Advance(10 * time.Second)
	require.Equal(t, 10, runs)
	broken = true
	clk.Advance(time.Second)
	require.Equal(t, 11, runs, "the run that was due is made")
	require.Equal(t, 1, panics)
	require.Equal(t, epoch.Add(11*time.Second), j.Next(), "the last known occurrence")
	clk.Advance(10*time.Minute - 1)
	require.Equal(t, 10, panics, "the schedule is called again once a minute")
	require.Equal(t, 11, runs, "no more than were due")
	require.Equal(t, 1, s.Len(), "the series goes on")
	clk.Advance(1)
	require.Equal(t, 11, panics)
	clk.SetWall(clk.Wall().Add(-time.Hour)) // so the schedule is called before the run
	require.True(t, j.RunNow())
	clk.Advance(0)
	require.Equal(t, 12, panics)
	require.Equal(t, 12, runs, "RunNow does not depend on the schedule")
	clk.SetWall(clk.Now())
	broken = false
	clk.Advance(time.Minute)
	require.Equal(t, 12, runs, "occurrences in between are skipped")
	require.Equal(t, clk.Now().Add(time.Second), j.Next())
	clk.Advance(10 * time.Second)
	require.Equal(t, 22, runs)
	require.Equal(t, 12, panics)
	require.True(t, j.Stop())
	balanced(t, s.Stats())
}

// Next panics. The panic handler gets the panic's value and its stack. The run still
// happens, and may panic too or end its goroutine.
func TestCalendar_NextPanicsAndTheRunToo(t *testing.T) {
	for name, f := range map[string]func(){
		"returns": func() {},
		"recovers": func() {
			if v := recover(); v != nil {
				panic("recovered the panic of Next")
			}
		},
		"panics": func() { panic("run") },
		"ends":   runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []any
				s := timer.New(timer.WithPanicHandler(func(v any, stack []byte) {
					told = append(told, v)
					require.Contains(t, string(stack), "brokenNext")
				}))
				begin := time.Now()
				asked := 0
				var runs []time.Duration
				jobs.Calendar(s, scheduleFunc(func(t time.Time) time.Time {
					if asked++; asked == 2 {
						brokenNext()
					}
					return everySecond.Next(t)
				}), func() {
					if runs = append(runs, time.Since(begin)); len(runs) == 1 {
						f()
					}
				})
				time.Sleep(63*time.Second + 500*time.Millisecond)
				require.NoError(t, s.Shutdown(context.Background()))
				require.Equal(t, seconds(1, 62, 63), runs)
				switch name {
				case "ends": // Goexit ends the panic too
					require.Empty(t, told)
				case "panics":
					require.Equal(t, []any{"run"}, told)
				default:
					require.Equal(t, []any{"next"}, told)
				}
				balanced(t, s.Stats())
			})
		})
	}
}

func brokenNext() { panic("next") }

// The schedule panics when it is called at the end of a run.
func TestCalendar_NextPanicsAtTheEndOfARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics := 0
		s := timer.New(timer.WithPanicHandler(func(any, []byte) { panics++ }))
		begin := time.Now()
		var runs []time.Duration
		asked := 0
		jobs.Calendar(s, scheduleFunc(func(t time.Time) time.Time {
			if asked++; asked == 3 {
				panic("oops")
			}
			return everySecond.Next(t)
		}), func() {
			if runs = append(runs, time.Since(begin)); len(runs) == 1 {
				time.Sleep(2500 * time.Millisecond)
			}
		})
		time.Sleep(66 * time.Second)
		require.NoError(t, s.Shutdown(context.Background()))
		require.Equal(t, 1, panics)
		// The schedule panics at 3.5 s and is called again a minute later.
		require.Equal(t, seconds(1, 64, 65), runs[:3])
		balanced(t, s.Stats())
	})
}

// A period does not follow the wall clock.
func TestPeriodic_WallClockIsSet(t *testing.T) {
	s, clk := virtual(t)
	n := 0
	jobs.Periodic(s, time.Second, func() { n++ })
	clk.SetWall(epoch.Add(24 * time.Hour))
	clk.Advance(10 * time.Second)
	clk.SetWall(epoch.Add(-24 * time.Hour))
	clk.Advance(10 * time.Second)
	require.Equal(t, 20, n)
}

// While a calendar job is pending, its timer fires once a minute to read the wall clock.
// Without such a job nothing fires.
func TestCalendar_WatchesOnlyWhilePending(t *testing.T) {
	s, clk := virtual(t)
	jobs.Periodic(s, 1000*time.Hour, func() {})
	clk.Advance(24 * time.Hour)
	// The wheel wakes up now and then, to move entries down from higher levels.
	require.Less(t, s.Stats().Wakeups, uint64(10), "without a schedule")
	before := s.Stats()
	j := must(jobs.Calendar(s, at(epoch.Add(10_000*time.Hour)), func() { t.Error("ran") }))
	clk.Advance(time.Hour)
	st := s.Stats()
	require.EqualValues(t, 60, st.Fired-before.Fired)
	require.True(t, j.Stop())
	clk.Advance(2 * time.Minute) // for the bucket that has become empty
	before = s.Stats()
	clk.Advance(24 * time.Hour)
	st = s.Stats()
	require.Zero(t, st.Fired-before.Fired)
	require.Less(t, st.Wakeups-before.Wakeups, uint64(10), "after Stop")
}

// The job skips occurrences during a run.
func TestCalendar_OverlongRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		begin := time.Now()
		var runs []time.Duration
		j := must(jobs.Calendar(s, everySecond, func() {
			runs = append(runs, time.Since(begin))
			switch len(runs) {
			case 1:
				time.Sleep(2500 * time.Millisecond)
			case 3:
				time.Sleep(5 * time.Minute) // longer than maxTimerDelay
			}
		}))
		time.Sleep(5*time.Minute + 7500*time.Millisecond)
		require.True(t, j.Stop())
		require.NoError(t, s.Shutdown(context.Background()))
		require.Equal(t, seconds(1, 4, 5, 306, 307), runs)
		balanced(t, s.Stats())
	})
}

// The process is suspended for an hour. Afterwards the job runs once, and then at its
// regular times.
func TestCalendar_Pause(t *testing.T) {
	s, clk := virtual(t)
	var runs []time.Duration
	jobs.Calendar(s, each(time.Minute), func() { runs = append(runs, clk.Now().Sub(epoch)) })
	clk.Suspend(time.Minute)
	clk.Suspend(time.Hour + time.Second)
	clk.Suspend(59 * time.Second)
	clk.Suspend(time.Minute)
	require.Equal(t, seconds(60, 3661, 3720, 3780), runs)
}

// Only one goroutine at a time calls the schedule: otherwise the race detector reports
// n. The schedule's argument has no monotonic reading.
func TestCalendar_OnTheSystemClock(t *testing.T) {
	s := timer.New()
	n := 0
	done := make(chan struct{})
	var last time.Time
	jobs.Calendar(s, scheduleFunc(func(now time.Time) time.Time {
		n++
		if now != now.Round(0) {
			t.Error("a time with a monotonic reading")
		}
		if n > 20 {
			return time.Time{}
		}
		last = now.Add(time.Millisecond)
		return last
	}), func() {
		if n > 20 {
			close(done)
		} else if now := time.Now().Round(0); now.Add(time.Second).Before(last) {
			t.Errorf("early: at %v, not %v", now, last)
		}
	})
	<-done
	require.NoError(t, s.Shutdown(context.Background()))
	require.Zero(t, s.Stats().Pending)
}

func TestCalendar_StopFromInsideAndFromNext(t *testing.T) {
	s, clk := virtual(t)
	n := 0
	var j *jobs.Job
	j = must(jobs.Calendar(s, everySecond, func() {
		if n++; n == 3 {
			require.True(t, j.Stop())
		}
	}))
	clk.Advance(time.Minute)
	require.Equal(t, 3, n)

	n = 0
	asked := 0
	j = must(jobs.Calendar(s, scheduleFunc(func(t time.Time) time.Time {
		if asked++; asked == 4 {
			j.Stop()
		}
		return everySecond.Next(t)
	}), func() { n++ }))
	clk.Advance(time.Minute)
	require.Equal(t, 3, n)
	require.Equal(t, 4, asked)
	require.Zero(t, s.Len())
	balanced(t, s.Stats())
}
