package durable_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/jobs"
)

// sleepUntil waits until a time in UTC.
func sleepUntil(t *testing.T, s string) {
	t.Helper()
	at, err := time.Parse(time.DateTime, s)
	require.NoError(t, err)
	require.Positive(t, time.Until(at))
	time.Sleep(time.Until(at))
}

// Two workers run each occurrence once, even when the clocks change in the zone.
func TestRecurring_CronInAZone(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		sleepUntil(t, "2000-03-24 12:00:00") // a Friday
		ds := make(deliveries, 100)
		for range 2 {
			w := durable.NewWorker(c)
			w.Handle("h", func(ctx context.Context, d durable.Delivery) error {
				require.Equal(t, d.Due.UTC(), time.Now().UTC())
				return ds.handle(ctx, d)
			})
			start(t, w)
		}
		require.Equal(t, durable.Created, schedule(t, c,
			durable.Task{Key: "k", Cron: "30 2 * * 0-5", Zone: "Europe/Berlin", End: time.Date(2000, 3, 28, 0, 30, 0, 0, time.UTC)}, durable.Next()))
		info, err := c.Get(ctx, "k")
		require.NoError(t, err)
		require.Equal(t, "30 2 * * 0-5 Europe/Berlin", info.Task.Cron+" "+info.Task.Zone)
		require.Equal(t, "2000-03-28 00:30:00", info.Task.End.UTC().Format(time.DateTime))
		for _, want := range []string{"2000-03-26 01:00:00", "2000-03-27 00:30:00", "2000-03-28 00:30:00"} {
			require.Equal(t, want, (<-ds).Due.UTC().Format(time.DateTime))
		}
		gone(t, c, "k")
		time.Sleep(1000 * time.Hour)
		require.Empty(t, ds)
	})
}

func TestRecurring_FirstRun(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet, durable.WithSchedule("minutes", &times{n: 1 << 30, step: time.Minute}))
		sleepUntil(t, "2000-01-03 10:00:30")
		day := func(hour int) time.Time { return time.Date(2000, 1, 3, hour, 0, 0, 0, time.UTC) }
		for want, task := range map[string]durable.Task{
			"2000-01-03 10:01:00":      {Cron: "* * * * *"},
			"2000-01-04 00:00:00":      {Cron: "@daily"},
			"2000-01-03 14:00:00":      {Cron: "0 9 * * *", Start: day(12), Zone: "America/Havana"},
			"2000-01-03 12:00:00":      {Cron: "* * * * *", Start: day(12)},
			"2000-01-03 10:20:30":      {Every: 20 * time.Minute},
			"2000-01-03 10:20:00":      {Every: 20 * time.Minute, Start: day(8)},
			"2000-01-03 10:00:30":      {Every: 30 * time.Second, Start: day(8)},
			"2000-01-03 13:00:00":      {Every: 20 * time.Minute, Start: day(13)},
			"2000-01-03 10:01:29.9999": {Schedule: "minutes"},
		} {
			task.Key = want
			schedule(t, c, task, durable.Next())
			info, err := c.Get(ctx, want)
			require.NoError(t, err)
			at, err := time.Parse(time.DateTime, want)
			require.NoError(t, err)
			require.WithinDuration(t, at, info.At, time.Millisecond, "%+v", task)
			require.True(t, info.Task.Start.Equal(task.Start), "%+v", task)
		}
	})
}

func TestRecurring_Refused(t *testing.T) {
	c := durable.New(memstore.New(), quiet)
	for want, task := range map[string]durable.Task{
		`the cron spec "0 9 * *": `:                    {Cron: "0 9 * *"},
		`the cron spec "61 * * * *": `:                 {Cron: "61 * * * *"},
		`it names a zone, which is an argument`:        {Cron: "CRON_TZ=Europe/Berlin 0 9 * * *"},
		`the word is not known`:                        {Cron: "@reboot"},
		`the cron spec "0 0 30 2 *": it never matches`: {Cron: "0 0 30 2 *"},
		`the zone "Europe/Atlantis": unknown time`:     {Cron: "* * * * *", Zone: "Europe/Atlantis"},
		`the zone "Local" depends on`:                  {Cron: "* * * * *", Zone: "Local"},
		`has a Zone but no Cron`:                       {Every: time.Hour, Zone: "Europe/Berlin"},
		`has two of Every, Cron and Schedule`:          {Every: time.Hour, Cron: "* * * * *"},
		`has a Start or an End, but does not repeat`:   {Start: time.Now()},
		`the Client does not know the schedule "s"`:    {Schedule: "s"},
		`is before its Start`:                          {Cron: "* * * * *", End: time.Now().Add(-time.Hour), Start: time.Now()},
		`does not repeat, and so has no next run`:      {},
	} {
		task.Key, task.Handler = "k", "h"
		_, err := c.Schedule(ctx, task, durable.Next())
		require.ErrorIs(t, err, durable.ErrInvalid)
		require.ErrorContains(t, err, want)
		_, err = c.ScheduleBatch(ctx, []durable.Item{{Task: task, When: durable.Next()}})
		require.ErrorContains(t, err, want)
	}
	_, err := c.Reschedule(ctx, "k", durable.Next())
	require.ErrorContains(t, err, "Next is only for Schedule")
	_, err = c.Get(ctx, "k")
	require.ErrorIs(t, err, durable.ErrNotFound)
}

// After a year without workers, one run replaces half a million missed runs.
func TestRecurring_LatestMissed(t *testing.T) {
	for cron, want := range map[string]string{
		"* * * * *":    "2000-12-31 10:30:00 2000-12-31 10:31:00",
		"15 8 * * *":   "2000-12-31 08:15:00 2001-01-01 08:15:00",
		"15 8 3 2 *":   "2000-02-03 08:15:00 2001-02-03 08:15:00",
		"15 8 3 1-6 *": "2000-06-03 08:15:00 2001-01-03 08:15:00",
	} {
		bubble(t, func(t *testing.T, mem *memstore.Store) {
			c := durable.New(mem, quiet)
			schedule(t, c, durable.Task{Key: "k", Cron: cron}, durable.Next())
			sleepUntil(t, "2000-12-31 10:30:30")
			ds := make(deliveries, 10)
			w := durable.NewWorker(c)
			w.Handle("h", ds.handle)
			start(t, w)
			got := (<-ds).Due.UTC().Format(time.DateTime)
			got = fmt.Sprint(got, " ", (<-ds).Due.UTC().Format(time.DateTime))
			require.Equal(t, want, got, cron)
		})
	}
}

// The same spec is due at the same times in packages durable and jobs, also when the
// clocks change. "@every" counts from the run before.
func TestRecurring_AsInPackageJobs(t *testing.T) {
	for _, spec := range []string{"47 6 * * 7", "30 * * * *", "*/10 0-6 * * *", "30 2 * * *", "0 2 L * *", "@weekly", "15 30 2 * * fri-sun", "@every 90m"} {
		for _, zone := range []string{"", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"} {
			bubble(t, func(t *testing.T, mem *memstore.Store) {
				c := durable.New(mem, quiet)
				want, err := jobs.ParseCron(spec, zone)
				require.NoError(t, err)
				w := durable.NewWorker(c)
				due := time.Now()
				runs := 0
				w.Handle("h", func(_ context.Context, d durable.Delivery) error {
					due = want.Next(due)
					require.Equal(t, due.UTC(), d.Due.UTC(), "%s %s", spec, zone)
					runs++
					return nil
				})
				sleepUntil(t, "2000-03-24 12:00:00")
				due = time.Now()
				schedule(t, c, durable.Task{Key: "k", Cron: spec, Zone: zone, Missed: durable.FireMissed}, durable.Next())
				start(t, w)
				time.Sleep(12 * 24 * time.Hour)
				synctest.Wait()
				require.Positive(t, runs)
			})
		}
	}
}
