package durable_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

func TestDeadLetters_ListRequeuePurge(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c)
		fail := true
		var mu sync.Mutex
		ds := make(deliveries, 1000)
		w.Handle("h", func(_ context.Context, d durable.Delivery) error {
			mu.Lock()
			defer mu.Unlock()
			if fail {
				return errors.New("no")
			}
			ds <- d
			return nil
		}, durable.WithMaxAttempts(1))
		start(t, w)
		const n = 300
		var items []durable.Item
		for i := range n {
			items = append(items, durable.Item{
				Task: durable.Task{Key: fmt.Sprint(i), Handler: "h", Body: []byte("b")}, When: durable.After(0),
			})
		}
		_, err := c.ScheduleBatch(ctx, items)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			st, err := c.Stats(ctx)
			return err == nil && st.Dead == n
		}, soon, 10*time.Millisecond)
		mu.Lock()
		fail = false
		mu.Unlock()

		seen := make(map[string]bool)
		for d, err := range c.List(ctx, durable.Filter{State: durable.Dead}) {
			require.NoError(t, err)
			require.False(t, seen[d.ID], "twice: %s", d.ID)
			seen[d.ID] = true
			require.Equal(t, d.ID, d.Task.Key)
			require.Equal(t, "b", string(d.Task.Body))
			require.Equal(t, 1, d.Attempts)
			require.Equal(t, "no", d.Failures[0].Error)
			require.WithinDuration(t, time.Now(), d.At, time.Minute)
			// Purging during the iteration does not skip any task.
			if len(seen)%2 == 0 {
				out, err := c.Purge(ctx, d.ID)
				require.NoError(t, err)
				require.Equal(t, durable.Removed, out)
			}
		}
		require.Len(t, seen, n)

		requeued := 0
		for d, err := range c.List(ctx, durable.Filter{State: durable.Dead}) {
			require.NoError(t, err)
			out, err := c.Requeue(ctx, d.ID, durable.After(0))
			require.NoError(t, err)
			require.Equal(t, durable.Moved, out)
			require.Equal(t, 1, ds.next(t).Attempt)
			requeued++
		}
		require.Equal(t, n/2, requeued)
		out, err := c.Requeue(ctx, "absent", durable.After(0))
		require.NoError(t, err)
		require.Equal(t, durable.Absent, out)
		out, err = c.Purge(ctx, "absent")
		require.NoError(t, err)
		require.Equal(t, durable.Absent, out)
	})
}

func TestDeadLetters_ManyAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c)
		// RequeueAll must end, although these tasks fail again immediately.
		for i := range 3 {
			w.Handle(fmt.Sprint("h", i), func(context.Context, durable.Delivery) error { return durable.NoRetry(errors.New("no")) })
		}
		start(t, w)
		const n = 300
		for i := range n {
			schedule(t, c, durable.Task{Key: fmt.Sprint(i), Handler: fmt.Sprint("h", i%3)}, durable.After(0))
		}
		dead := func(n int64) {
			t.Helper()
			require.Eventually(t, func() bool {
				st, err := c.Stats(ctx)
				return err == nil && st.Dead == n && st.Pending+st.Running == 0
			}, soon, 5*time.Millisecond)
		}
		dead(n)
		of := func(i int) durable.Filter { return durable.Filter{Handler: fmt.Sprint("h", i)} }
		time.Sleep(time.Millisecond) // a task that died in this microsecond is not requeued
		moved, err := c.RequeueAll(ctx, of(0), durable.After(time.Hour))
		require.NoError(t, err)
		require.Equal(t, n/3, moved)
		st, err := c.Stats(ctx)
		require.NoError(t, err)
		require.EqualValues(t, n/3, st.Pending)
		removed, err := c.PurgeAll(ctx, of(1))
		require.NoError(t, err)
		require.Equal(t, n/3, removed)
		moved, err = c.RequeueAll(ctx, durable.Filter{State: durable.Dead}, durable.After(0))
		require.NoError(t, err)
		require.Equal(t, n/3, moved)
		require.Eventually(t, func() bool { return w.Stats().Died == n+n/3 }, soon, 5*time.Millisecond)
		removed, err = c.PurgeAll(ctx, durable.Filter{State: durable.Dead})
		require.NoError(t, err)
		require.LessOrEqual(t, removed, n/3)
		stopped, cancel := context.WithCancel(ctx)
		cancel()
		_, err = c.PurgeAll(stopped, durable.Filter{State: durable.Dead})
		require.ErrorIs(t, err, context.Canceled)
		_, err = c.RequeueAll(ctx, durable.Filter{}, durable.When{})
		require.ErrorIs(t, err, durable.ErrInvalid)
	})
}

// A repeating task that always fails has one dead letter, not one for each run.
func TestDeadLetters_OneForATaskThatRepeats(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c)
		var fail atomic.Bool
		fail.Store(true)
		ds := make(deliveries, 1000)
		w.Handle("h", func(_ context.Context, d durable.Delivery) error {
			if fail.Load() {
				return durable.NoRetry(errors.New(d.Due.String()))
			}
			ds <- d
			return nil
		})
		start(t, w)
		schedule(t, c, durable.Task{Key: "k", Every: time.Millisecond, Missed: durable.LatestMissed}, durable.After(0))
		letter := func() durable.Info {
			var all []durable.Info
			for d, err := range c.List(ctx, durable.Filter{State: durable.Dead}) {
				require.NoError(t, err)
				all = append(all, d)
			}
			require.Len(t, all, 1)
			return all[0]
		}
		require.Eventually(t, func() bool { return w.Stats().Died >= 50 }, soon, 5*time.Millisecond)
		st, err := c.Stats(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 1, st.Dead)
		_, err = c.Cancel(ctx, "k")
		require.NoError(t, err)
		gone(t, c, "k")
		st, err = c.Stats(ctx)
		require.NoError(t, err)
		d := letter()
		require.EqualValues(t, st.Died, d.Runs)
		require.Equal(t, "k", d.Task.Key)
		require.Zero(t, d.Task.Every)
		require.Len(t, d.Failures, 10)
		require.Equal(t, d.Due.String(), d.Failures[9].Error, "the error of the latest run")

		// The requeued run fails and becomes a separate dead letter.
		out, err := c.Requeue(ctx, d.ID, durable.After(0))
		require.NoError(t, err)
		require.Equal(t, durable.Moved, out)
		require.Eventually(t, func() bool {
			st, err := c.Stats(ctx)
			return err == nil && st.Dead == 1
		}, soon, 5*time.Millisecond)
		again := letter()
		require.Equal(t, 1, again.Runs)
		require.NotEqual(t, d.ID, again.ID)
		fail.Store(false)
		_, err = c.Requeue(ctx, again.ID, durable.After(0))
		require.NoError(t, err)
		require.Equal(t, "k", ds.next(t).Key)
		require.Eventually(t, func() bool {
			st, err := c.Stats(ctx)
			return err == nil && st.Dead+st.Pending+st.Running == 0
		}, soon, 5*time.Millisecond, "it does not repeat")
	})
}
