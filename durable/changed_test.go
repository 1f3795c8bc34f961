package durable_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

// A changed task is a task of a new version of a program, at its start.
var changedTasks = map[string]durable.Task{
	"retention": {Cron: "0 9 * * *", Retention: durable.Retention{Runs: 30}},
	"body":      {Cron: "0 9 * * *", Body: []byte("new")},
	"cron":      {Cron: "0 10 * * *"},
	"zone":      {Cron: "0 9 * * *", Zone: "Europe/Berlin"},
	"period":    {Every: 24 * time.Hour},
	"end":       {Cron: "0 9 * * *", End: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)},
	"over":      {Cron: "0 9 * * *", End: time.Date(2000, 1, 1, 9, 0, 0, 0, time.UTC)},
}

// A deploy changes a daily task while its run is overdue, is being retried, or runs and
// then fails, is handed back or loses its worker. The run stays, with its time, and gets
// the new content.
func TestChange_LosesNoRun(t *testing.T) {
	nine := time.Date(2000, 1, 1, 9, 0, 0, 0, time.UTC)
	for name, changed := range changedTasks {
		for _, state := range []string{"overdue", "retried", "fails", "handed back", "crashes", "running"} {
			for how, opts := range map[string][]durable.ScheduleOption{"schedule": nil, "only changed": {durable.OnlyChanged()}} {
				t.Run(name+", "+state+", "+how, func(t *testing.T) {
					bubble(t, func(t *testing.T, mem *memstore.Store) {
						c := durable.New(mem, quiet)
						task := durable.Task{Key: "k", Handler: "h", Cron: "0 9 * * *"}
						register := func() {
							_, err := c.Schedule(ctx, task, durable.Next(), opts...)
							require.NoError(t, err)
						}
						register()
						var first, done durable.Delivery
						runs := 0
						// work runs a worker until a time. Its first attempt ends with err.
						work := func(until time.Time, during func(), err error) {
							wctx, cancel := context.WithDeadline(ctx, until)
							defer cancel()
							w := durable.NewWorker(c, durable.WithUnsafe())
							w.Handle("h", func(_ context.Context, d durable.Delivery) error {
								if during != nil {
									first = d
									during()
									during = nil
									return err
								}
								if d.Due.Equal(nine) {
									done = d
									runs++
								}
								return nil
							})
							require.NoError(t, w.Run(wctx))
						}
						sleepUntil(t, "2000-01-01 08:59:00")
						change := func() {
							key, handler := task.Key, task.Handler
							task = changed
							task.Key, task.Handler = key, handler
							register()
						}
						switch broken := durable.RetryAfter(errors.New("broken"), time.Hour); state {
						case "overdue":
							sleepUntil(t, "2000-01-01 09:01:00")
							change()
						case "retried":
							work(nine.Add(time.Minute), func() {}, broken)
							change()
						case "fails":
							work(nine.Add(time.Minute), change, broken)
						case "handed back":
							work(nine.Add(time.Minute), change, durable.HandBack(errors.New("later"), time.Hour))
						case "running":
							work(nine.Add(time.Minute), change, nil)
							runs++
							done = first
						case "crashes":
							time.Sleep(time.Minute)
							crash(t, mem, 1)
							change()
							time.Sleep(time.Minute)
						}
						work(nine.Add(14*time.Hour), nil, nil)
						require.Equal(t, 1, runs, "runs of 9:00")
						if state == "fails" || state == "retried" {
							require.NotEqual(t, first.IdempotencyKey(), done.IdempotencyKey())
							require.Equal(t, 2, done.Attempt)
						}
						if state != "running" {
							require.Equal(t, string(changed.Body), string(done.Body))
						}
						info, err := c.Get(ctx, "k")
						if name == "over" {
							require.ErrorIs(t, err, durable.ErrNotFound)
							return
						}
						require.NoError(t, err)
						next := map[string]string{"cron": "10", "zone": "08", "period": ""}
						if want, ok := next[name]; !ok {
							require.Equal(t, "02 09:00", info.At.UTC().Format("02 15:04"))
						} else if want != "" {
							require.Equal(t, want+":00", info.At.UTC().Format("15:04"))
						}
						require.Equal(t, changed.Retention, info.Task.Retention)
					})
				})
			}
		}
	}
}

// A run is due, and its task is moved to another time: that time comes after the run, and
// "run now" does not begin a second one.
func TestReschedule_LosesNoRun(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		schedule(t, c, durable.Task{Key: "k", Handler: "h", Cron: "0 9 * * *"}, durable.Next())
		sleepUntil(t, "2000-01-01 09:30:00")
		move := func(w durable.When) durable.Outcome {
			out, err := c.Reschedule(ctx, "k", w)
			require.NoError(t, err)
			return out
		}
		require.Equal(t, durable.Following, move(durable.After(time.Hour)))
		info, err := c.Get(ctx, "k")
		require.NoError(t, err)
		require.True(t, info.Following)
		require.Equal(t, "09:00, then 10:30", info.At.UTC().Format("15:04, then ")+info.Next.UTC().Format("15:04"))
		require.Equal(t, durable.Moved, move(durable.After(0)))
		ds := make(deliveries, 10)
		w := durable.NewWorker(c)
		w.Handle("h", ds.handle)
		start(t, w)
		for _, want := range []string{"01 09:00", "01 10:30", "02 09:00"} {
			require.Equal(t, want, (<-ds).Due.UTC().Format("02 15:04"))
		}
	})
}

// River #791: a program that starts more often than its task is due, each time with
// another body, must not stop the task.
func TestChange_KeepsThePhase(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		ds := make(deliveries, 100)
		w := durable.NewWorker(c)
		w.Handle("h", ds.handle)
		start(t, w)
		for build := range 60 {
			_, err := c.Schedule(ctx, durable.Task{Key: "weekly", Handler: "h", Every: 7 * 24 * time.Hour, Body: []byte{byte(build)}}, durable.Next(), durable.OnlyChanged())
			require.NoError(t, err)
			time.Sleep(24 * time.Hour)
		}
		require.Len(t, ds, 8)
	})
}

// The End of a task has passed when its program starts: that is no error.
func TestSchedule_AfterItsEnd(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		sleepUntil(t, "2000-01-03 10:00:00")
		for _, task := range []durable.Task{{Cron: "0 9 * * *"}, {Every: time.Hour}, {Every: time.Hour, Start: time.Now().Add(-24*time.Hour - time.Minute)}} {
			task.Key, task.Handler = "k", "h"
			ended := task
			ended.End = time.Now().Add(-time.Minute)
			at := func(want durable.Outcome, task durable.Task) {
				out, err := c.Schedule(ctx, task, durable.Next(), durable.OnlyChanged())
				require.NoError(t, err)
				require.Equal(t, want, out)
			}
			at(durable.Absent, ended)
			at(durable.Created, task)
			at(durable.Removed, ended)
			at(durable.Absent, ended)
		}
	})
}
