package jobs_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/jobs"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// Tests of jobs with a Schedule. The wall clock is set, or time passes while a job
// reads it.

// The wall clock is set forward, past several occurrences. The job notices within a
// minute, and runs once for all of them.
func TestCalendar_WallClockSetForward(t *testing.T) {
	s, clk := virtual(t)
	var runs []time.Time
	j := must(jobs.Calendar(s, each(time.Hour), func() { runs = append(runs, clk.Wall()) }))
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

	// The clock is set forward, but not past the occurrence. The job runs exactly when
	// the clock shows the occurrence's time.
	clk.SetWall(epoch.Add(6*time.Hour + 58*time.Minute + 30*time.Second))
	clk.Advance(90*time.Second - 1)
	require.Len(t, runs, 2)
	clk.Advance(1)
	require.Len(t, runs, 3)
	require.Equal(t, epoch.Add(7*time.Hour), runs[2])
}

// The clock is set forward past millions of occurrences. Then it is set back, and
// forward again.
func TestCalendar_WallClockSetForwardByYears(t *testing.T) {
	s, clk := virtual(t)
	runs := 0
	j := must(jobs.Calendar(s, everySecond, func() { runs++ }))
	clk.Advance(3 * time.Second)
	clk.SetWall(epoch.AddDate(69, 0, 0))
	clk.Advance(time.Second)
	require.Equal(t, 4, runs)
	clk.Advance(time.Minute)
	require.Equal(t, 64, runs)
	clk.SetWall(epoch)
	clk.Advance(time.Second) // the schedule is called
	require.Equal(t, 64, runs)
	clk.SetWall(epoch.AddDate(69, 0, 0))
	clk.Advance(time.Second)
	require.Equal(t, 65, runs)
	require.Equal(t, clk.Wall().Add(time.Second), j.Next())
	balanced(t, s.Stats())
}

// The clock is set back. An occurrence that the clock shows a second time runs again.
func TestCalendar_WallClockSetBack(t *testing.T) {
	s, clk := virtual(t)
	var runs []time.Time
	j := must(jobs.Calendar(s, each(time.Hour), func() { runs = append(runs, clk.Wall()) }))
	clk.Advance(59 * time.Minute)
	clk.SetWall(epoch.Add(-2 * time.Hour))
	clk.Advance(time.Minute)
	require.Equal(t, epoch.Add(-time.Hour), j.Next(), "noticed within a minute")
	clk.Advance(58*time.Minute + 59*time.Second)
	require.Empty(t, runs, "early, by the wall clock")
	clk.Advance(time.Second)
	require.Equal(t, []time.Time{epoch.Add(-time.Hour)}, runs)
	clk.Advance(2 * time.Hour)
	require.Equal(t, []time.Time{epoch.Add(-time.Hour), epoch, epoch.Add(time.Hour)}, runs)

	// The clock is set back just before an occurrence, when the job waits for it.
	clk.SetWall(epoch.Add(2*time.Hour - 2*time.Minute))
	clk.Advance(2*time.Minute - time.Millisecond)
	clk.SetWall(epoch.Add(2*time.Hour - 5*time.Second))
	clk.Advance(4999 * time.Millisecond)
	require.Len(t, runs, 3)
	clk.Advance(time.Millisecond)
	require.Len(t, runs, 4)
	require.Equal(t, epoch.Add(2*time.Hour), runs[3])

	// The clock is set back by less than the time since the last call of the schedule:
	// the next occurrence stays.
	clk.Advance(50 * time.Minute)
	clk.SetWall(epoch.Add(2*time.Hour + 5*time.Minute))
	clk.Advance(55*time.Minute - 1)
	require.Len(t, runs, 4)
	clk.Advance(1)
	require.Len(t, runs, 5)
	require.Equal(t, epoch.Add(3*time.Hour), runs[4])
	balanced(t, s.Stats())
}

// The clock shows 2099 at first, and is then set to 2026.
func TestCalendar_WallClockSetBackByYears(t *testing.T) {
	clk := timertest.NewClock(time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC))
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
	defer s.Close()
	runs := 0
	j := must(jobs.Calendar(s, everySecond, func() { runs++ }))
	clk.Advance(3 * time.Second)
	require.Equal(t, 3, runs)
	right := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clk.SetWall(right)
	clk.Advance(time.Hour)
	require.Equal(t, right.Add(time.Hour+time.Second), j.Next())
	require.Equal(t, 3+3600-1, runs, "all but the one at which it was noticed")
	balanced(t, s.Stats())
}

// If the clock is set back during a run, the job notices when the run ends.
func TestCalendar_WallClockSetBackDuringARun(t *testing.T) {
	s, clk := virtual(t)
	var runs []time.Time
	j := must(jobs.Calendar(s, each(time.Hour), func() {
		if runs = append(runs, clk.Wall()); len(runs) == 1 {
			clk.SetWall(epoch.Add(-10 * time.Minute))
		}
	}))
	clk.Advance(time.Hour)
	require.Equal(t, epoch, j.Next())
	clk.Advance(70 * time.Minute)
	require.Equal(t, []time.Time{epoch.Add(time.Hour), epoch, epoch.Add(time.Hour)}, runs)
}

// If the clock is set back by up to a minute, as by a time server, no occurrence runs
// twice.
func TestCalendar_WallClockSetBackALittle(t *testing.T) {
	for _, by := range []time.Duration{time.Millisecond, time.Second, 30 * time.Second, time.Minute} {
		s, clk := virtual(t)
		var runs []time.Time
		f := func() { runs = append(runs, clk.Wall()) }
		back := func() { clk.SetWall(clk.Wall().Add(-by)) }

		// The clock is set back right after a run.
		j := must(jobs.Calendar(s, each(time.Hour), f))
		clk.Advance(time.Hour)
		back()
		clk.Advance(time.Hour)
		require.Equal(t, []time.Time{epoch.Add(time.Hour)}, runs, by)
		clk.Advance(by)
		require.Equal(t, []time.Time{epoch.Add(time.Hour), epoch.Add(2 * time.Hour)}, runs, by)

		// The clock is set back at an occurrence, just before the job reads the clock.
		clk.Advance(time.Hour - 61*time.Second)
		_, err := s.Start(61*time.Second, back)
		require.NoError(t, err)
		clk.Advance(61 * time.Second)
		require.Len(t, runs, 2, by)
		clk.Advance(by)
		require.Len(t, runs, 3, by)
		require.Equal(t, epoch.Add(3*time.Hour), runs[2])
		require.Equal(t, epoch.Add(4*time.Hour), j.Next(), by)

		// The clock is set back again, a minute after a run.
		clk.Advance(time.Minute)
		back()
		clk.Advance(time.Hour - time.Minute)
		require.Len(t, runs, 3, by)
		clk.Advance(by)
		require.Len(t, runs, 4, by)
		require.True(t, j.Stop())

		// A series with a short period waits until the clock shows the time of its next
		// occurrence again.
		runs = nil
		jobs.Calendar(s, everySecond, f)
		clk.Advance(10 * time.Second)
		back()
		clk.Advance(by + 10*time.Second)
		require.Len(t, runs, 20, by)
		for i, r := range runs {
			require.Equal(t, runs[0].Add(time.Duration(i)*time.Second), r)
		}
		balanced(t, s.Stats())
	}
}

// The wall clock is set at random, and some calls of the schedule panic. An occurrence
// runs twice only if the clock was set back by more than a minute. Two minutes after
// the last change, all runs are on time.
func TestCalendar_WallClockModel(t *testing.T) {
	rng := newRand(t)
	// upTo returns a whole number of ticks, so that nothing is rounded.
	upTo := func(d time.Duration) time.Duration {
		return time.Duration(rng.Int64N(int64(d/timer.DefaultTick))) * timer.DefaultTick
	}
	for range 100 {
		s, clk := virtual(t, timer.WithPanicHandler(func(any, []byte) {}))
		period := time.Duration(1+rng.IntN(100)) * time.Second
		var runs []time.Time
		var last time.Time // the last occurrence
		ahead := func() time.Duration { return clk.Wall().Sub(clk.Now()) }
		asked := ahead() // the last call of the schedule
		set := func() {
			by := upTo(2*time.Minute) - time.Minute
			if rng.IntN(2) == 0 {
				by *= 1000
			}
			clk.SetWall(clk.Wall().Add(by))
			if asked-ahead() > time.Minute {
				last = time.Time{} // the last occurrence may be repeated
			}
		}
		broken := 0
		jobs.Calendar(s, scheduleFunc(func(t time.Time) time.Time {
			asked = ahead()
			if rng.IntN(100) < broken {
				panic("oops")
			}
			return each(period).Next(t)
		}), func() {
			now := clk.Wall()
			this := now.Truncate(period)
			require.True(t, last.Before(this), "twice: %v", this)
			last = this
			runs = append(runs, now)
			if broken > 0 && rng.IntN(10) == 0 {
				set()
			}
		})
		for range 20 {
			broken = 30
			for range rng.IntN(10) {
				if rng.IntN(3) == 0 {
					set()
				}
				clk.Advance(upTo(2 * period))
			}
			broken = 0
			clk.Advance(2*time.Minute + period)
			runs = nil
			first := each(period).Next(clk.Wall())
			clk.Advance(10 * period)
			require.Len(t, runs, 10, "period %v", period)
			for i, r := range runs {
				require.Equal(t, first.Add(time.Duration(i)*period), r, "period %v", period)
			}
		}
		balanced(t, s.Stats())
	}
}

// hookClock calls a function after a certain reading of the wall clock.
type hookClock struct {
	*timertest.Clock
	in   int // after how many readings from now
	hook func()
}

func (c *hookClock) Wall() time.Time {
	w := c.Clock.Wall()
	if c.in > 0 {
		if c.in--; c.in == 0 {
			c.hook()
		}
	}
	return w
}

// A run ends just before the next occurrence. That occurrence comes before the job has
// set its timer, and may be skipped. The one after it must run.
func TestCalendar_RunEndsAtTheNextOccurrence(t *testing.T) {
	for _, c := range []struct {
		name     string
		during   time.Duration // the length of the run, until it ends
		readings int           // the occurrence comes after this reading, or
		asked    int           // inside this call of the schedule
		want     []time.Duration
	}{
		{"after it has read the clock", 0, 1, 0, seconds(1, 2, 3, 4, 5, 6)},
		{"another one, after it has read the clock", time.Second, 1, 0, seconds(1, 3, 4, 5, 6)},
		{"another one, before it sets the timer", time.Second, 2, 0, seconds(1, 4, 5, 6)},
		{"another one, while it asks", time.Second, 0, 3, seconds(1, 3, 4, 5, 6)},
		{"while it asks as it begins", 0, 0, 2, seconds(2, 3, 4, 5, 6)},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clk := &hookClock{Clock: timertest.NewClock(epoch)}
				clk.hook = func() { clk.Advance(time.Second) }
				s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewGoroutines()))
				var runs []time.Duration
				asked := 0
				advanced, release := make(chan struct{}), make(chan struct{})
				j := must(jobs.Calendar(s, scheduleFunc(func(t time.Time) time.Time {
					if asked++; asked == c.asked {
						<-advanced // one at a time
						clk.hook()
					}
					return everySecond.Next(t)
				}), func() {
					if runs = append(runs, clk.Now().Sub(epoch)); len(runs) == 1 {
						<-release
					}
				}))
				advance := func(d time.Duration) {
					clk.Advance(d)
					synctest.Wait()
				}
				clk.Advance(time.Second)
				close(advanced)
				synctest.Wait()
				advance(c.during)
				clk.in = c.readings
				close(release)
				synctest.Wait()
				advance(0)
				for clk.Now().Before(epoch.Add(6 * time.Second)) {
					advance(time.Second)
				}
				require.Equal(t, c.want, runs)
				require.True(t, j.Stop())
				require.NoError(t, s.Shutdown(context.Background()))
				balanced(t, s.Stats())
			})
		})
	}
}

// The clock is set back at various times after a run. Within a minute the job notices a
// change of more than a minute, but no smaller one.
func TestCalendar_WallClockSetBackAtAnyMoment(t *testing.T) {
	for _, by := range []time.Duration{59 * time.Second, time.Minute, 61 * time.Second, 90 * time.Second, 119 * time.Second, 121 * time.Second, time.Hour} {
		for since := time.Duration(0); since <= 3*time.Minute; since += 7 * time.Second {
			s, clk := virtual(t)
			asked := 0
			var runs []time.Time
			must(jobs.Calendar(s, scheduleFunc(func(t time.Time) time.Time {
				asked++
				return each(time.Hour).Next(t)
			}), func() { runs = append(runs, clk.Wall()) }))
			clk.Advance(time.Hour + since)
			require.Equal(t, 2, asked)
			clk.SetWall(clk.Wall().Add(-by))
			clk.Advance(time.Minute)
			noticed := by > time.Minute
			require.Equal(t, noticed, asked > 2, "%v back, %v after a run", by, since)

			// The occurrence runs again if its time was still to come when the job
			// noticed the change.
			readAt := since.Truncate(time.Minute) + time.Minute
			again := noticed && readAt-by < 0
			clk.AdvanceTo(clk.Now().Add(epoch.Add(time.Hour + 30*time.Minute).Sub(clk.Wall())))
			require.Equal(t, again, len(runs) == 2, "%v back, %v after a run: %v", by, since, runs)
			s.Close()
		}
	}
}
