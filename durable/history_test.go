package durable_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

func TestHistory_OfARepeatingTask(t *testing.T) {
	bubble(t, func(t *testing.T, _ *memstore.Store) {
		c := durable.New(memstore.New(memstore.WithShards(1)), quiet)
		w := durable.NewWorker(c, durable.WithMaxAttempts(2), durable.WithBackoff(0, 0))
		n := 0
		w.Handle("h", func(_ context.Context, d durable.Delivery) error {
			if d.Attempt == 1 {
				n++
			}
			time.Sleep(time.Second)
			switch {
			case n == 4, n == 5 && d.Attempt == 1:
				return errors.New("no")
			}
			require.NoError(t, d.SetResult([]byte(strings.Repeat("r", n))))
			require.ErrorIs(t, d.SetResult(make([]byte, durable.MaxResult+1)), durable.ErrInvalid)
			return nil
		})
		w.Handle("o", func(context.Context, durable.Delivery) error { return nil })
		start(t, w)
		began := time.Now()
		schedule(t, c, durable.Task{Key: "k", Every: time.Minute, Retention: durable.Retention{For: time.Hour, Runs: 3}}, durable.After(time.Minute))
		schedule(t, c, durable.Task{Key: "other", Handler: "o", Retention: durable.Retention{For: time.Minute}}, durable.After(0))
		time.Sleep(5*time.Minute + 30*time.Second)

		runs, err := c.Runs(ctx, "k")
		require.NoError(t, err)
		require.Len(t, runs, 3)
		last := runs[0]
		require.Equal(t, []bool{true, false, true}, []bool{last.Done, runs[1].Done, runs[2].Done})
		require.Equal(t, "k h rrrrr", last.Key+" "+last.Handler+" "+string(last.Result))
		require.Equal(t, 5*time.Minute, last.Due.Sub(began))
		require.Equal(t, 5*time.Minute+time.Second, last.Began.Sub(began))
		require.Equal(t, 5*time.Minute+2*time.Second, last.Ended.Sub(began))
		require.Equal(t, 2, last.Attempts)
		require.Equal(t, "no", last.Failures[0].Error)
		require.Len(t, runs[1].Failures, 2)
		require.Empty(t, runs[1].Result)

		runs, err = c.Runs(ctx, "other")
		require.NoError(t, err)
		require.Empty(t, runs, "the runs were kept for a minute only")
		var listed []durable.Info
		for info, err := range c.List(ctx, durable.Filter{State: durable.Past, Prefix: "k\x00"}) {
			require.NoError(t, err)
			listed = append(listed, info)
		}
		require.Len(t, listed, 3)
		require.Equal(t, last, *listed[1].Run, "the fifth run is in the second of three places")
		require.Equal(t, "k", listed[1].Task.Key)

		_, err = c.Cancel(ctx, "k")
		require.NoError(t, err)
		time.Sleep(2 * time.Hour)
		schedule(t, c, durable.Task{Key: "any"}, durable.After(0)) // with its claim the others are forgotten
		time.Sleep(time.Second)
		st, err := c.Stats(ctx)
		require.NoError(t, err)
		require.Zero(t, st.Past)
	})
}

func TestUnique_AKeyThatWasDone(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		ds := make(deliveries, 10)
		w := durable.NewWorker(c)
		w.Handle("h", ds.handle)
		start(t, w)
		task := durable.Task{Key: "k", Unique: time.Hour}
		require.Equal(t, durable.Created, schedule(t, c, task, durable.After(time.Minute)))
		require.Equal(t, durable.Replaced, schedule(t, c, task, durable.After(0)), "no run has succeeded yet")
		ds.next(t)
		gone(t, c, "k")
		require.Equal(t, durable.Kept, schedule(t, c, task, durable.After(2*time.Hour)))
		require.Equal(t, durable.Created, schedule(t, c, durable.Task{Key: "k"}, durable.After(0)), "the new task has no Unique")
		ds.next(t)
		time.Sleep(59 * time.Minute)
		require.Equal(t, durable.Kept, schedule(t, c, task, durable.After(0)))
		time.Sleep(2 * time.Minute)
		require.Equal(t, durable.Created, schedule(t, c, task, durable.After(0)))
		ds.next(t)
	})
}

// startHeld starts a worker whose handler h returns what it gets from end.
func startHeld(t *testing.T, c *durable.Client) (ds deliveries, end chan error) {
	ds, end = make(deliveries, 10), make(chan error)
	w := durable.NewWorker(c)
	w.Handle("h", func(_ context.Context, d durable.Delivery) error {
		ds <- d
		return <-end
	})
	start(t, w)
	return ds, end
}

// Before a run has succeeded, Unique has no effect.
func TestUnique_WithoutOnlyNew(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		ds, end := startHeld(t, c)
		task := durable.Task{Key: "k", Handler: "h", Unique: time.Hour}
		schedule(t, c, task, durable.After(0))
		ds.next(t)
		require.Equal(t, durable.Following, schedule(t, c, task, durable.After(0)))
		end <- nil
		ds.next(t) // it runs again
		_, err := c.Schedule(ctx, task, durable.After(0), durable.OnlyNew())
		require.NoError(t, err)
		end <- nil
		gone(t, c, "k")
		require.Equal(t, durable.Kept, schedule(t, c, task, durable.After(0)))
		require.Empty(t, ds)
	})
}

func TestPauseTask(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		ds := make(deliveries, 10)
		end := make(chan error)
		w := durable.NewWorker(c)
		w.Handle("h", ds.handle)
		w.Handle("slow", func(ctx context.Context, d durable.Delivery) error {
			ds <- d
			return <-end
		})
		start(t, w)
		task := durable.Task{Key: "k", Cron: "0 * * * *"}
		outcome := func(f func(context.Context, string, ...durable.ChangeOption) (durable.Outcome, error)) durable.Outcome {
			t.Helper()
			out, err := f(ctx, "k")
			require.NoError(t, err)
			return out
		}
		paused := func() bool {
			info, err := c.Get(ctx, "k")
			require.NoError(t, err)
			return info.Paused
		}
		require.Equal(t, durable.Absent, outcome(c.PauseTask))
		require.Equal(t, durable.Absent, outcome(c.ResumeTask))
		schedule(t, c, task, durable.Next())
		require.Equal(t, durable.Kept, outcome(c.ResumeTask))
		require.False(t, paused())
		require.Equal(t, durable.Moved, outcome(c.PauseTask))
		require.True(t, paused())
		task.Cron = "30 * * * *"
		require.Equal(t, durable.Replaced, schedule(t, c, task, durable.Next()))
		require.True(t, paused(), "a paused task stays paused when it is scheduled again")
		time.Sleep(100*time.Hour + 10*time.Minute)
		require.Empty(t, ds)
		require.Equal(t, durable.Moved, outcome(c.ResumeTask))
		require.False(t, paused())
		synctest.Wait()
		require.Len(t, ds, 1, "of the runs that were due during the pause, the latest runs at once")
		require.Equal(t, "03:30", (<-ds).Due.UTC().Format("15:04"))
		require.Equal(t, "04:30", (<-ds).Due.UTC().Format("15:04"))

		// Pause the task while it runs. Then the run fails.
		task.Handler = "slow"
		schedule(t, c, task, durable.Next())
		<-ds
		require.Equal(t, durable.Following, outcome(c.PauseTask))
		require.True(t, paused())
		require.Equal(t, durable.Following, schedule(t, c, task, durable.Next()))
		require.True(t, paused())
		end <- errors.New("no")
		time.Sleep(100 * time.Hour)
		require.Empty(t, ds)
		require.Equal(t, durable.Moved, outcome(c.ResumeTask))
		synctest.Wait()
		require.Len(t, ds, 1, "the run is tried again at once")
		require.Equal(t, 2, (<-ds).Attempt)
		close(end) // for the runs that follow too
	})
}

// A task that runs once can be paused too, and created paused. It keeps its time and its
// attempts, runs at once if it is resumed late, and once if it is rescheduled.
func TestPauseTask_RunsOnce(t *testing.T) {
	withShards(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		ds := make(deliveries, 10)
		w := durable.NewWorker(c)
		w.Handle("h", func(_ context.Context, d durable.Delivery) error {
			ds <- d
			return durable.RetryAfter(errors.New("later"), time.Minute)
		})
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		synctest.Wait()
		get := func() durable.Info {
			t.Helper()
			info, err := c.Get(ctx, "k")
			require.NoError(t, err)
			return info
		}
		task := durable.Task{Key: "k", Handler: "h"}
		due := time.Now().Add(time.Hour)
		out, err := c.Schedule(ctx, task, durable.At(due), durable.Paused())
		require.NoError(t, err)
		require.Equal(t, durable.Created, out)
		time.Sleep(24 * time.Hour)
		require.Empty(t, ds)
		require.True(t, get().Paused && get().At.Equal(due), get())
		out, err = c.Schedule(ctx, task, durable.At(due), durable.OnlyChanged())
		require.NoError(t, err)
		require.Equal(t, durable.Kept, out)
		upcoming, err := c.Upcoming(ctx, time.Now().Add(time.Hour), 10)
		require.NoError(t, err)
		require.Empty(t, upcoming)
		page, err := c.Page(ctx, durable.Filter{Paused: true}, "", 10)
		require.NoError(t, err)
		require.Len(t, page.Tasks, 1)

		out, err = c.Reschedule(ctx, "k", durable.After(0))
		require.NoError(t, err)
		require.Equal(t, durable.Once, out)
		time.Sleep(time.Hour)
		require.Len(t, ds, 1)
		require.Equal(t, 1, (<-ds).Attempt)
		require.True(t, get().Paused && !get().Once && get().Attempts == 1 && len(get().Failures) == 1, get())

		dst := memstore.New()
		_, err = durable.Copy(ctx, dst, mem)
		require.NoError(t, err)
		copied, err := durable.New(dst, quiet).Get(ctx, "k")
		require.NoError(t, err)
		require.True(t, copied.Paused && copied.Attempts == 1, copied)

		out, err = c.ResumeTask(ctx, "k")
		require.NoError(t, err)
		require.Equal(t, durable.Moved, out)
		synctest.Wait()
		require.Len(t, ds, 1)
		require.Equal(t, 2, (<-ds).Attempt)
		require.NoError(t, w.Shutdown(ctx))
		require.NoError(t, <-done)
	})
}

func TestOnlyChanged(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		again := func(x durable.Task) durable.Outcome {
			x.Key, x.Handler = "k", "h"
			out, err := c.Schedule(ctx, x, durable.Next(), durable.OnlyChanged())
			require.NoError(t, err)
			return out
		}
		require.Equal(t, durable.Created, again(durable.Task{Cron: "0 * * * *", Body: []byte("b")}))
		time.Sleep(3 * time.Hour)
		require.Equal(t, durable.Kept, again(durable.Task{Cron: "0 * * * *", Body: []byte("b")}), "the overdue task stays")
		info, err := c.Get(ctx, "k")
		require.NoError(t, err)
		require.True(t, info.At.Before(time.Now()))
		require.Equal(t, durable.Replaced, again(durable.Task{Cron: "0 * * * *", Body: []byte("c")}))
		require.Equal(t, durable.Replaced, again(durable.Task{Cron: "1 * * * *", Body: []byte("c")}))
	})
}

// IfVersion changes a task only as its client has seen it. Info shows what follows a running
// task, and its version.
func TestIfVersion(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		ds, end := startHeld(t, c)
		get := func() durable.Info {
			t.Helper()
			info, err := c.Get(ctx, "k")
			require.NoError(t, err)
			return info
		}
		want := func(what durable.Outcome) func(durable.Outcome, error) {
			return func(got durable.Outcome, err error) {
				t.Helper()
				require.NoError(t, err)
				require.Equal(t, what, got)
			}
		}
		task := durable.Task{Key: "k", Handler: "h", Body: []byte("one")}
		want(durable.Changed)(c.Schedule(ctx, task, durable.After(time.Hour), durable.IfVersion(1)))
		want(durable.Created)(c.Schedule(ctx, task, durable.After(time.Hour)))
		first := get().Version
		want(durable.Moved)(c.Reschedule(ctx, "k", durable.After(0), durable.IfVersion(first)))
		require.Equal(t, "one", string((<-ds).Body))
		running := get()
		require.Greater(t, running.Version, first)
		require.Nil(t, running.NextTask)
		task.Body = []byte("two")
		want(durable.Changed)(c.Schedule(ctx, task, durable.After(0), durable.IfVersion(first)))
		want(durable.Following)(c.Schedule(ctx, task, durable.After(0), durable.IfVersion(running.Version)))
		second := get()
		require.Equal(t, "one", string(second.Task.Body))
		require.Equal(t, "two", string(second.NextTask.Body))
		task.Body = []byte("three")
		want(durable.Changed)(c.Schedule(ctx, task, durable.After(0), durable.IfVersion(running.Version)))
		for _, f := range []func(context.Context, string, ...durable.ChangeOption) (durable.Outcome, error){c.Cancel, c.PauseTask, c.ResumeTask, c.Purge} {
			want(durable.Changed)(f(ctx, "k", durable.IfVersion(first)))
		}
		end <- nil
		require.Equal(t, "two", string((<-ds).Body))
		require.Equal(t, second.Version, get().Version)
		require.Nil(t, get().NextTask)
		end <- nil
		synctest.Wait()
		want(durable.Absent)(c.Cancel(ctx, "k", durable.IfVersion(second.Version)))

		for _, v := range []int64{0, -1} {
			_, err := c.Schedule(ctx, task, durable.After(0), durable.IfVersion(v))
			require.ErrorIs(t, err, durable.ErrInvalid)
			_, err = c.Cancel(ctx, "k", durable.IfVersion(v))
			require.ErrorIs(t, err, durable.ErrInvalid)
		}
		_, err := c.ScheduleBatch(ctx, []durable.Item{{Task: task, When: durable.After(0)}, {Task: task, When: durable.After(0)}}, durable.IfVersion(1))
		require.ErrorIs(t, err, durable.ErrInvalid)
	})
}
