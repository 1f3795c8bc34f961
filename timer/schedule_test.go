package timer_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
)

type scheduleFunc func(time.Time) time.Time

func (f scheduleFunc) Next(t time.Time) time.Time { return f(t) }

// each is a schedule of all multiples of d.
func each(d time.Duration) timer.Schedule {
	return scheduleFunc(func(t time.Time) time.Time { return t.Truncate(d).Add(d) })
}

var everySecond = each(time.Second)

// at is a schedule of the given times.
func at(times ...time.Time) timer.Schedule {
	return scheduleFunc(func(t time.Time) time.Time {
		for _, n := range times {
			if n.After(t) {
				return n
			}
		}
		return time.Time{}
	})
}

func TestSchedule(t *testing.T) {
	s, clk := virtual(t)
	clk.Advance(17 * time.Second)
	var runs []time.Time
	j := s.Schedule(each(time.Minute), func() { runs = append(runs, clk.Now()) })
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

// Occurrences far apart: the watch in between runs nothing.
func TestSchedule_FarApart(t *testing.T) {
	s, clk := virtual(t)
	a, b := epoch.Add(36*time.Hour+time.Second/3), epoch.Add(100*time.Hour)
	var runs []time.Time
	j := s.Schedule(at(a, b), func() { runs = append(runs, clk.Now()) })
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

func TestSchedule_EndsWhenNextIsZero(t *testing.T) {
	s, clk := virtual(t)
	over := s.Schedule(at(), func() { t.Error("ran") })
	require.False(t, over.Stop())
	require.Zero(t, over.Next())
	require.Zero(t, s.Stats().Started)

	n := 0
	var j *timer.Job
	j = s.Schedule(at(epoch.Add(time.Second), epoch.Add(2*time.Second)), func() {
		if n++; n == 2 {
			require.Zero(t, j.Next(), "in the last run it is over")
			require.False(t, j.Stop())
		}
	})
	clk.Advance(time.Hour)
	require.Equal(t, 2, n, "the last one runs")
	require.Zero(t, s.Len())
	wakeups := s.Stats().Wakeups
	clk.Advance(24 * time.Hour)
	require.Equal(t, wakeups, s.Stats().Wakeups)
	balanced(t, s.Stats())
}

// RussellLuo: a schedule whose first Next lay an hour back ran 3,601 times in
// 100 ms, to catch up.
func TestSchedule_RussellLuo_NextAnHourBack(t *testing.T) {
	s, clk := virtual(t)
	last := clk.Now().Add(-time.Hour)
	runs := 0
	// Each is a second after the one before, as theirs are asked.
	s.Schedule(scheduleFunc(func(time.Time) time.Time {
		last = last.Add(time.Second)
		return last
	}), func() { runs++ })
	clk.Advance(100 * time.Millisecond)
	require.Equal(t, 1, runs)
	clk.Advance(10 * time.Second)
	require.Equal(t, 11, runs, "once a second")

	runs = 0
	first := true
	s, clk = virtual(t)
	s.Schedule(scheduleFunc(func(t time.Time) time.Time {
		if first {
			first = false
			return t.Add(-time.Hour)
		}
		return t.Add(time.Second)
	}), func() { runs++ })
	clk.Advance(time.Minute)
	require.Equal(t, 61, runs)
}

// A schedule that is always in the past, or never moves on.
func TestSchedule_NextThatIsNotAfter(t *testing.T) {
	for name, sched := range map[string]timer.Schedule{
		"the same":        scheduleFunc(func(t time.Time) time.Time { return t }),
		"long ago":        scheduleFunc(func(t time.Time) time.Time { return time.Unix(0, 0) }),
		"year -1,000,000": scheduleFunc(func(t time.Time) time.Time { return t.AddDate(-1_000_000, 0, 0) }),
	} {
		s, clk := virtual(t)
		runs := 0
		inside := true
		s.Schedule(sched, func() { require.False(t, inside); runs++ })
		inside = false
		clk.Advance(0)
		require.Equal(t, 1, runs, name)
		clk.Advance(time.Minute)
		require.Equal(t, 61, runs, name)
	}
}

func TestSchedule_FarNext(t *testing.T) {
	for name, next := range map[string]time.Time{
		"a million years":   epoch.AddDate(1_000_000, 0, 0),
		"the last duration": epoch.Add(1<<63 - 1),
		"the end":           time.Unix(1<<60, 0),
	} {
		s, clk := virtual(t)
		j := s.Schedule(at(next), func() { t.Errorf("%s: ran", name) })
		require.True(t, next.Equal(j.Next()))
		clk.Advance(24 * time.Hour)
		require.True(t, next.Equal(j.Next()))
		require.True(t, j.Stop())
	}
}

func TestSchedule_NextPanics(t *testing.T) {
	s, _ := virtual(t)
	require.PanicsWithValue(t, "oops", func() {
		s.Schedule(scheduleFunc(func(time.Time) time.Time { panic("oops") }), func() {})
	})
	require.Zero(t, s.Len())

	panics, runs, broken := 0, 0, false
	s, clk := virtual(t, timer.WithPanicHandler(func(any, []byte) { panics++ }))
	j := s.Schedule(scheduleFunc(func(t time.Time) time.Time {
		if broken {
			panic("oops")
		}
		return everySecond.Next(t)
	}), func() { runs++ })
	clk.Advance(10 * time.Second)
	require.Equal(t, 10, runs)
	broken = true
	clk.Advance(10 * time.Minute)
	require.Positive(t, panics)
	require.LessOrEqual(t, panics, 11, "once a minute")
	require.Equal(t, 10, runs, "the run that could not be planned")
	require.Equal(t, 1, s.Len(), "the series goes on")
	broken = false
	clk.Advance(time.Minute)
	require.Greater(t, runs, 10, "noticed within a minute")
	runs = 0
	clk.Advance(10 * time.Second)
	require.Equal(t, 10, runs)
	require.True(t, j.Stop())
	balanced(t, s.Stats())
}

// The wall clock is set forward, past an occurrence: it is noticed within a
// minute, and one run makes up for all that were passed over.
func TestSchedule_WallClockSetForward(t *testing.T) {
	s, clk := virtual(t)
	var runs []time.Time
	j := s.Schedule(each(time.Hour), func() { runs = append(runs, clk.Wall()) })
	clk.Advance(10*time.Minute + 30*time.Second)
	clk.SetWall(epoch.Add(5*time.Hour + 20*time.Minute))
	clk.Advance(time.Minute)
	require.Len(t, runs, 1)
	require.WithinRange(t, runs[0], epoch.Add(5*time.Hour+20*time.Minute), epoch.Add(5*time.Hour+21*time.Minute))
	require.Equal(t, epoch.Add(6*time.Hour), j.Next())
	clk.Advance(39*time.Minute - 1)
	require.Len(t, runs, 1)
	clk.Advance(1)
	require.Len(t, runs, 2)
	require.Equal(t, epoch.Add(6*time.Hour), runs[1])

	// Not past it: it comes sooner, to the tick.
	clk.SetWall(epoch.Add(6*time.Hour + 58*time.Minute + 30*time.Second))
	clk.Advance(90*time.Second - 1)
	require.Len(t, runs, 2)
	clk.Advance(1)
	require.Len(t, runs, 3)
	require.Equal(t, epoch.Add(7*time.Hour), runs[2])
}

// Set back, the occurrence comes when the wall clock shows it, not before.
func TestSchedule_WallClockSetBack(t *testing.T) {
	s, clk := virtual(t)
	var runs []time.Time
	s.Schedule(each(time.Hour), func() { runs = append(runs, clk.Wall()) })
	clk.Advance(59 * time.Minute)
	clk.SetWall(epoch.Add(-2 * time.Hour))
	clk.Advance(2*time.Hour + 59*time.Minute + 59*time.Second)
	require.Empty(t, runs, "early, by the wall clock")
	clk.Advance(time.Second)
	require.Equal(t, []time.Time{epoch.Add(time.Hour)}, runs)

	// A moment before it is due, when the timer has been set for it.
	clk.SetWall(epoch.Add(2*time.Hour - 2*time.Minute))
	clk.Advance(2*time.Minute - time.Millisecond)
	clk.SetWall(epoch.Add(2*time.Hour - 5*time.Second))
	clk.Advance(4999 * time.Millisecond)
	require.Len(t, runs, 1)
	clk.Advance(time.Millisecond)
	require.Len(t, runs, 2)
	require.Equal(t, epoch.Add(2*time.Hour), runs[1])
}

// Durations do not follow the wall clock.
func TestEvery_WallClockIsSet(t *testing.T) {
	s, clk := virtual(t)
	n := 0
	s.Every(time.Second, func() { n++ })
	clk.SetWall(epoch.Add(24 * time.Hour))
	clk.Advance(10 * time.Second)
	clk.SetWall(epoch.Add(-24 * time.Hour))
	clk.Advance(10 * time.Second)
	require.Equal(t, 20, n)
}

// While a schedule's job is pending the timer fires once a minute to look; when
// none is, nothing does.
func TestSchedule_WatchesOnlyWhilePending(t *testing.T) {
	s, clk := virtual(t)
	s.Every(1000*time.Hour, func() {})
	clk.Advance(24 * time.Hour)
	// As buckets of higher levels come down.
	require.Less(t, s.Stats().Wakeups, uint64(10), "without a schedule")
	before := s.Stats()
	j := s.Schedule(at(epoch.Add(10_000*time.Hour)), func() { t.Error("ran") })
	clk.Advance(time.Hour)
	st := s.Stats()
	require.EqualValues(t, 60, st.Fired-before.Fired)
	require.True(t, j.Stop())
	clk.Advance(2 * time.Minute) // for the bucket that was emptied
	before = s.Stats()
	clk.Advance(24 * time.Hour)
	st = s.Stats()
	require.Zero(t, st.Fired-before.Fired)
	require.Less(t, st.Wakeups-before.Wakeups, uint64(10), "after Stop")
}

// Occurrences during a run are left out.
func TestSchedule_OverlongRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New()
		begin := time.Now()
		var runs []time.Duration
		j := s.Schedule(everySecond, func() {
			runs = append(runs, time.Since(begin))
			switch len(runs) {
			case 1:
				time.Sleep(2500 * time.Millisecond)
			case 3:
				time.Sleep(5 * time.Minute) // longer than the watch
			}
		})
		time.Sleep(5*time.Minute + 7500*time.Millisecond)
		require.True(t, j.Stop())
		require.NoError(t, s.Shutdown(context.Background()))
		require.Equal(t, seconds(1, 4, 5, 306, 307), runs)
		balanced(t, s.Stats())
	})
}

// The process sleeps for an hour: one run, and then on as planned.
func TestSchedule_Pause(t *testing.T) {
	s, clk := newStoppable(t)
	var runs []time.Duration
	s.Schedule(each(time.Minute), func() { runs = append(runs, clk.Now().Sub(epoch)) })
	clk.suspend(time.Minute)
	clk.suspend(time.Hour + time.Second)
	clk.suspend(59 * time.Second)
	clk.suspend(time.Minute)
	require.Equal(t, seconds(60, 3661, 3720, 3780), runs)
}

// A run that the executor refuses is tried again within a minute.
func TestSchedule_RefusedByTheExecutor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New(timer.WithExecutor(executor.NewPool(executor.WithMaxWorkers(1), executor.WithQueue(1), executor.WithOverload(executor.Reject))))
		release := make(chan struct{})
		for range 2 {
			start(t, s, 500*time.Millisecond, func() { <-release })
		}
		begin := time.Now()
		var runs []time.Duration
		s.Schedule(each(10*time.Minute), func() { runs = append(runs, time.Since(begin)) })
		time.Sleep(12*time.Minute + 500*time.Millisecond)
		require.Empty(t, runs)
		require.NotZero(t, s.Stats().Dropped)
		close(release)
		time.Sleep(20 * time.Minute)
		require.NoError(t, s.Shutdown(context.Background()))
		require.Equal(t, seconds(13*60, 20*60, 30*60), runs)
	})
}

// The schedule is asked by one goroutine at a time, with a time of the wall
// clock: the race detector watches n.
func TestSchedule_OnTheSystemClock(t *testing.T) {
	s := timer.New()
	n := 0
	done := make(chan struct{})
	var last time.Time
	s.Schedule(scheduleFunc(func(now time.Time) time.Time {
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

func TestSchedule_StopFromInsideAndFromNext(t *testing.T) {
	s, clk := virtual(t)
	n := 0
	var j *timer.Job
	j = s.Schedule(everySecond, func() {
		if n++; n == 3 {
			require.True(t, j.Stop())
		}
	})
	clk.Advance(time.Minute)
	require.Equal(t, 3, n)

	n = 0
	asked := 0
	j = s.Schedule(scheduleFunc(func(t time.Time) time.Time {
		if asked++; asked == 4 {
			j.Stop()
		}
		return everySecond.Next(t)
	}), func() { n++ })
	clk.Advance(time.Minute)
	require.Equal(t, 3, n)
	require.Equal(t, 4, asked)
	require.Zero(t, s.Len())
	balanced(t, s.Stats())
}
