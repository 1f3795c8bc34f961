package durable_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/store"
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
		`task "k" never runs from`:                     {Cron: "@every 2562047h"}, // past the last time of a store, where it would count as paused
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

func TestWorker_Repeats(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet, durable.WithSchedule("thrice", &times{n: 2, step: 20 * time.Millisecond}))
		ds := make(deliveries, 100)
		w := durable.NewWorker(c)
		w.Handle("h", ds.handle)
		start(t, w)
		const every = 20 * time.Millisecond
		schedule(t, c, durable.Task{Key: "every", Every: every}, durable.After(0))
		first := ds.next(t)
		for i := range 5 {
			d := ds.next(t)
			require.Equal(t, first.Due.Add(time.Duration(i+1)*every), d.Due)
			require.Equal(t, 1, d.Attempt)
			require.NotEqual(t, first.IdempotencyKey(), d.IdempotencyKey())
		}
		_, err := c.Cancel(ctx, "every")
		require.NoError(t, err)
		gone(t, c, "every")
		for len(ds) > 0 {
			<-ds
		}
		schedule(t, c, durable.Task{Key: "schedule", Schedule: "thrice"}, durable.After(0))
		for range 3 {
			require.Equal(t, "schedule", ds.next(t).Key)
		}
		gone(t, c, "schedule")
	})
}

func TestWorker_ARepeatingTaskSurvivesADeadRun(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c)
		ds := make(deliveries, 100)
		bad := true
		var mu sync.Mutex
		w.Handle("h", func(_ context.Context, d durable.Delivery) error {
			mu.Lock()
			defer mu.Unlock()
			if bad {
				bad = false
				return durable.NoRetry(errors.New("this one"))
			}
			ds <- d
			return nil
		})
		start(t, w)
		schedule(t, c, durable.Task{Key: "k", Every: time.Hour, Missed: durable.FireMissed}, durable.At(time.Now().Add(-90*time.Minute)))
		second := ds.next(t)
		var letters []durable.Info
		for d, err := range c.List(ctx, durable.Filter{State: durable.Dead}) {
			require.NoError(t, err)
			letters = append(letters, d)
		}
		require.Len(t, letters, 1)
		require.Equal(t, "k", letters[0].Task.Key)
		require.Equal(t, second.Due.Add(-time.Hour), letters[0].Due)
		_, err := c.Requeue(ctx, letters[0].ID, durable.After(0))
		require.NoError(t, err)
		again := ds.next(t)
		require.Equal(t, "k", again.Key)
		require.Eventually(t, func() bool {
			st, err := c.Stats(ctx)
			return err == nil && st.Pending == 1 && st.Running == 0 && st.Dead == 0
		}, soon, 5*time.Millisecond, "the requeued run does not repeat")
	})
}

// The next worker makes the run a dead letter, and the task continues.
func TestWorker_PoisonEndsNoRepeatingTask(t *testing.T) {
	for name, test := range map[string]struct {
		task durable.Task
		lost int // leases, until the run dies
	}{
		"every":    {durable.Task{Key: "cron", Every: time.Minute}, durable.DefaultMaxCrashes},
		"schedule": {durable.Task{Key: "cron", Schedule: "minutes"}, durable.DefaultMaxCrashes},
		"latest":   {durable.Task{Key: "cron", Every: time.Minute, Missed: durable.LatestMissed}, durable.DefaultMaxCrashes},
		"attempts": {durable.Task{Key: "cron", Every: time.Minute, MaxAttempts: 2}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, mem *memstore.Store) {
				c := durable.New(mem, quiet, durable.WithSchedule("minutes", &times{n: 1 << 30, step: time.Minute}))
				release := make(chan struct{})
				var runs, hung atomic.Int64
				w := durable.NewWorker(c, durable.WithLease(time.Second))
				w.Handle("h", func(context.Context, durable.Delivery) error {
					if hung.Add(1) <= int64(test.lost) {
						<-release // like a handler that ignores its context
						return nil
					}
					runs.Add(1)
					return nil
				}, durable.WithTimeout(time.Second))
				start(t, w)
				defer close(release)
				schedule(t, c, test.task, durable.After(0))
				time.Sleep(time.Hour + time.Second)
				synctest.Wait()
				info, err := c.Get(ctx, "cron")
				require.NoError(t, err)
				require.Equal(t, durable.Pending, info.State)
				require.EqualValues(t, 60, runs.Load())
				n := 0
				for d, err := range c.List(ctx, durable.Filter{State: durable.Dead}) {
					require.NoError(t, err)
					require.Equal(t, store.DeadID("cron"), d.ID)
					require.Equal(t, []int{1, test.lost, test.lost}, []int{d.Runs, d.Crashes, d.Attempts})
					n++
				}
				require.Equal(t, 1, n)
			})
		})
	}
}

// next is a function that implements Schedule.
type next func(time.Time) time.Time

func (f next) Next(t time.Time) time.Time { return f(t) }

// A task whose schedule does not advance must not keep the workers busy.
func TestWorker_SchedulesThatDoNotGoOn(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		calls := make(chan string, 100_000)
		step := func(d time.Duration) next { return func(t time.Time) time.Time { return t.Add(d) } }
		c := durable.New(mem, quiet,
			durable.WithSchedule("stays", step(0)),
			durable.WithSchedule("goes back", step(-time.Hour)),
			durable.WithSchedule("panics", next(func(time.Time) time.Time { panic("no") })),
			durable.WithSchedule("creeps", step(1)))
		w := durable.NewWorker(c)
		w.Handle("h", func(_ context.Context, d durable.Delivery) error {
			calls <- d.Key
			return nil
		})
		late := time.Now().Add(-time.Minute)
		for _, name := range []string{"stays", "goes back"} {
			schedule(t, c, durable.Task{Key: name, Schedule: name}, durable.After(0))
			schedule(t, c, durable.Task{Key: name + ", latest", Schedule: name, Missed: durable.LatestMissed}, durable.At(late))
			schedule(t, c, durable.Task{Key: name + ", dead", Schedule: name, Missed: durable.DeadMissed, MissedAfter: 1}, durable.At(late))
		}
		schedule(t, c, durable.Task{Key: "panics", Schedule: "panics", MaxAttempts: 1}, durable.After(0))
		start(t, w)
		require.Eventually(t, func() bool {
			st, err := c.Stats(ctx)
			return err == nil && st.Dead == 7
		}, soon, time.Millisecond)
		require.Empty(t, calls, "nothing was run")
		for d, err := range c.List(ctx, durable.Filter{State: durable.Dead}) {
			require.NoError(t, err)
			want, attempts := "does not advance: after ", 0
			switch {
			case d.Task.Key == "panics":
				want, attempts = "panic in the schedule", 1
			case d.Task.Missed == durable.DeadMissed:
				want = "missed"
			}
			require.Contains(t, d.Failures[0].Error, want)
			require.Equal(t, attempts, d.Attempts)
		}

		// This schedule advances by less than a millisecond. The task still runs only
		// once a millisecond.
		begin := time.Now()
		schedule(t, c, durable.Task{Key: "creeps", Schedule: "creeps"}, durable.At(begin))
		for range 50 {
			require.Equal(t, "creeps", receive(t, calls))
		}
		info, err := c.Get(ctx, "creeps")
		require.NoError(t, err)
		require.GreaterOrEqual(t, info.Due.Sub(begin), 49*time.Millisecond)
		_, err = c.Cancel(ctx, "creeps")
		require.NoError(t, err)
	})
}
