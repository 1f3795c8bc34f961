package main

import (
	"testing"
	"time"
	_ "time/tzdata" // the same everywhere

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/jobs"
	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// runs returns the times at which a job with the schedule spec runs, during the given
// number of days after start.
func runs(t *testing.T, spec string, start time.Time, days int) []string {
	sched, err := jobs.ParseCron(spec, "Local")
	require.NoError(t, err)
	clk := timertest.NewClock(start)
	s := timer.New(timer.WithClock(clk), timer.WithExecutor(executor.NewInline()))
	defer s.Close()
	var at []string
	jobs.Calendar(s, sched, func() { at = append(at, clk.Now().Format("2006-01-02 15:04:05 MST")) })
	clk.Advance(time.Duration(days) * 24 * time.Hour)
	return at
}

func zone(t *testing.T, name string) *time.Location {
	loc, err := time.LoadLocation(name)
	require.NoError(t, err)
	return loc
}

// A job at nine in the morning runs at nine on the days when summer time begins or ends.
func TestSchedule_DailyAcrossBothClockChanges(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	require.Equal(t, []string{
		"2026-03-28 09:00:00 CET",
		"2026-03-29 09:00:00 CEST", // 23 hours later
		"2026-03-30 09:00:00 CEST",
	}, runs(t, "0 9 * * *", time.Date(2026, 3, 27, 12, 0, 0, 0, berlin), 3))
	require.Equal(t, []string{
		"2026-10-24 09:00:00 CEST",
		"2026-10-25 09:00:00 CET", // 25 hours later
		"2026-10-26 09:00:00 CET",
	}, runs(t, "0 9 * * *", time.Date(2026, 10, 23, 12, 0, 0, 0, berlin), 3))
	newYork := zone(t, "America/New_York")
	require.Equal(t, []string{
		"2026-03-07 09:00:00 EST",
		"2026-03-08 09:00:00 EDT",
	}, runs(t, "0 9 * * *", time.Date(2026, 3, 6, 12, 0, 0, 0, newYork), 2))
}

func TestSchedule_MonthEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long under the race detector: make test runs it")
	}
	start := time.Date(2027, 12, 31, 12, 0, 0, 0, time.UTC)
	// A job on the 31st does not run in shorter months.
	require.Equal(t, []string{
		"2028-01-31 00:00:00 UTC", "2028-03-31 00:00:00 UTC", "2028-05-31 00:00:00 UTC",
		"2028-07-31 00:00:00 UTC", "2028-08-31 00:00:00 UTC", "2028-10-31 00:00:00 UTC",
		"2028-12-31 00:00:00 UTC",
	}, runs(t, "0 0 31 * *", start, 366))
	// @monthly runs on the first. A job on February 29 runs only in leap years.
	require.Len(t, runs(t, "@monthly", start, 366), 12)
	require.Equal(t, []string{"2028-02-29 00:00:00 UTC"}, runs(t, "0 0 29 2 *", start, 366))
}

func TestSchedule_EveryTenSecondsForADay(t *testing.T) {
	require.Len(t, runs(t, "*/10 * * * * *", time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), 1), 24*60*6)
}

// When summer time begins, a job in the skipped hour runs at 3:00. When summer time ends, a
// job in the repeated hour runs once.
func TestSchedule_InTheHourOfAClockChange(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	require.Equal(t, []string{
		"2026-03-28 02:30:00 CET",
		"2026-03-29 03:00:00 CEST", // there is no half past two
		"2026-03-30 02:30:00 CEST",
	}, runs(t, "30 2 * * *", time.Date(2026, 3, 28, 0, 0, 0, 0, berlin), 3))
	require.Equal(t, []string{
		"2026-10-24 02:30:00 CEST",
		"2026-10-25 02:30:00 CEST",
		"2026-10-26 02:30:00 CET",
	}, runs(t, "30 2 * * *", time.Date(2026, 10, 24, 0, 0, 0, 0, berlin), 3))
}
