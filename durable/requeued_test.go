package durable_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/store"
)

// requeued makes a run of the repeating task cron fail, requeues it, and returns its
// Info.
func requeued(t *testing.T, c *durable.Client, w durable.When) durable.Info {
	t.Helper()
	schedule(t, c, durable.Task{Key: "cron", Body: []byte("body"), Every: time.Hour}, durable.After(0))
	synctest.Wait()
	out, err := c.Requeue(ctx, store.DeadID("cron"), w)
	require.NoError(t, err)
	require.Equal(t, durable.Moved, out)
	var found []durable.Info
	for info, err := range c.List(ctx, durable.Filter{Prefix: "cron\x00"}) {
		require.NoError(t, err)
		found = append(found, info)
	}
	require.Len(t, found, 1)
	require.Equal(t, durable.Pending, found[0].State)
	require.Equal(t, "cron", found[0].Task.Key)
	require.Zero(t, found[0].Task.Every)
	return found[0]
}

// Cancel with the ID of a requeued run cancels that run, and Cancel with the key
// cancels the repeating task.
func TestCancel_OfARequeuedRun(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c)
		ran := make(deliveries, 100)
		var fail atomic.Bool
		fail.Store(true)
		w.Handle("h", func(_ context.Context, d durable.Delivery) error {
			if fail.Load() {
				return durable.NoRetry(errors.New("no"))
			}
			ran <- d
			return nil
		})
		start(t, w)

		run := requeued(t, c, durable.After(10*time.Minute))
		fail.Store(false)
		info, err := c.Get(ctx, run.ID)
		require.NoError(t, err)
		require.Equal(t, run, info)
		out, err := c.Cancel(ctx, run.ID)
		require.NoError(t, err)
		require.Equal(t, durable.Removed, out)
		_, err = c.Get(ctx, run.ID)
		require.ErrorIs(t, err, durable.ErrNotFound)
		none(t, ran, time.Hour-time.Second)
		d := ran.next(t) // the task continues
		require.Equal(t, "cron", d.Key)
		info, err = c.Get(ctx, "cron")
		require.NoError(t, err)
		require.Equal(t, "cron", info.ID)
		require.Equal(t, time.Hour, info.Task.Every)

		// Cancel the repeating task. Its requeued run stays.
		fail.Store(true)
		run = requeued(t, c, durable.After(10*time.Minute))
		fail.Store(false)
		outs, err := c.CancelBatch(ctx, []string{"cron"})
		require.NoError(t, err)
		require.Equal(t, []durable.Outcome{durable.Removed}, outs)
		out, err = c.Reschedule(ctx, run.ID, durable.After(5*time.Hour))
		require.NoError(t, err)
		require.Equal(t, durable.Moved, out)
		none(t, ran, 5*time.Hour-time.Second)
		require.Equal(t, "body", string(ran.next(t).Body))
		none(t, ran, 5*time.Hour)
		require.Empty(t, entries(t, mem))

		fail.Store(true)
		run = requeued(t, c, durable.After(10*time.Minute))
		fail.Store(false)
		outs, err = c.CancelBatch(ctx, []string{"cron", run.ID, run.ID})
		require.NoError(t, err)
		require.Equal(t, []durable.Outcome{durable.Removed, durable.Removed, durable.Absent}, outs)
		none(t, ran, 5*time.Hour)
		require.Empty(t, entries(t, mem))
	})
}

// Invalid IDs are refused before a command is sent. Cancel and Reschedule find no task
// for the ID of a dead letter.
func TestCancel_OfWhatIsNoRun(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c)
		w.Handle("h", func(context.Context, durable.Delivery) error { return durable.NoRetry(errors.New("no")) })
		start(t, w)
		schedule(t, c, durable.Task{Key: "cron", Every: time.Hour}, durable.After(0))
		synctest.Wait()
		dead := store.DeadID("cron")
		info, err := c.Get(ctx, dead)
		require.NoError(t, err)
		require.Equal(t, durable.Dead, info.State)
		require.Equal(t, dead, info.ID)
		for _, id := range []string{dead, store.SingleID("cron", 17)} {
			out, err := c.Cancel(ctx, id)
			require.NoError(t, err)
			require.Equal(t, durable.Absent, out)
			out, err = c.Reschedule(ctx, id, durable.After(0))
			require.NoError(t, err)
			require.Equal(t, durable.Absent, out)
		}
		longest := strings.Repeat("k", durable.MaxKey)
		out, err := c.Cancel(ctx, store.SingleID(longest, store.Farthest))
		require.NoError(t, err)
		require.Equal(t, durable.Absent, out)
		for _, id := range []string{"", "\x00", "\x0017", "cron\x00" + strings.Repeat("1", 21), store.DeadID(longest + "k")} {
			for name, f := range map[string]func() error{
				"Get":         func() error { _, err := c.Get(ctx, id); return err },
				"Cancel":      func() error { _, err := c.Cancel(ctx, id); return err },
				"CancelBatch": func() error { _, err := c.CancelBatch(ctx, []string{"cron", id}); return err },
				"Reschedule":  func() error { _, err := c.Reschedule(ctx, id, durable.After(0)); return err },
				"Requeue":     func() error { _, err := c.Requeue(ctx, id, durable.After(0)); return err },
				"Purge":       func() error { _, err := c.Purge(ctx, id); return err },
			} {
				require.ErrorIs(t, f(), durable.ErrInvalid, "%s of %q", name, id)
			}
		}
		require.Len(t, entries(t, mem), 2)
	})
}

// A repeating task and its requeued run run at the same time. If the smaller token
// arrives last, the receiver refuses it. The next attempt has a larger token.
func TestToken_OfARequeuedRunThatIsOvertaken(t *testing.T) {
	for _, first := range []string{"run", "task"} {
		t.Run(first, func(t *testing.T) {
			bubble(t, func(t *testing.T, mem *memstore.Store) {
				c := durable.New(mem, quiet)
				w := durable.NewWorker(c)
				var mu sync.Mutex // guards these
				fail := true
				var single time.Time // when the requeued run is due
				var largest int64
				var refused, done []string
				w.Handle("h", func(_ context.Context, d durable.Delivery) error {
					mu.Lock()
					defer mu.Unlock()
					if fail {
						return durable.NoRetry(errors.New("no"))
					}
					what := "task"
					if d.Due.Equal(single) {
						what = "run"
					}
					if what == first && d.Attempt == 1 {
						mu.Unlock()
						time.Sleep(time.Minute) // on its way
						mu.Lock()
					}
					if d.Token < largest {
						refused = append(refused, what)
						return errors.New("the receiver has seen a larger token")
					}
					largest = d.Token
					done = append(done, what)
					return nil
				})
				start(t, w)
				before := 30 * time.Second
				if first == "task" {
					before = -before
				}
				run := requeued(t, c, durable.After(time.Hour-before))
				mu.Lock()
				single, fail = run.Due, false
				mu.Unlock()
				time.Sleep(90 * time.Minute)
				synctest.Wait()
				second := "task"
				if first == "task" {
					second = "run"
				}
				mu.Lock()
				defer mu.Unlock()
				require.Equal(t, []string{second, first}, done)
				require.Equal(t, []string{first}, refused)
				st, err := c.Stats(ctx)
				require.NoError(t, err)
				require.Zero(t, st.Dead)
			})
		})
	}
}
