package durable_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/store"
)

func TestWorker_ProlongsItsLeases(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		const lease = 300 * time.Millisecond
		ds := make(deliveries, 10)
		for range 2 {
			w := durable.NewWorker(c, durable.WithLease(lease))
			w.Handle("h", func(ctx context.Context, d durable.Delivery) error {
				ds <- d
				select {
				case <-ctx.Done():
					t.Error(context.Cause(ctx))
				case <-time.After(5 * lease):
				}
				return nil
			})
			start(t, w)
		}
		schedule(t, c, durable.Task{Key: "k"}, durable.After(0))
		ds.next(t)
		gone(t, c, "k")
		st, err := c.Stats(ctx)
		require.NoError(t, err)
		require.Zero(t, st.Crashed)
		require.Empty(t, ds)
	})
}

func TestCancel_OfARunningTask(t *testing.T) {
	const lease = 300 * time.Millisecond
	t.Run("same client", func(t *testing.T) {
		testCancelOfARunningTask(t, lease, 0, func(_ store.Store, c *durable.Client) *durable.Client { return c })
	})
	t.Run("another client", func(t *testing.T) {
		testCancelOfARunningTask(t, lease, lease/3, func(st store.Store, _ *durable.Client) *durable.Client { return durable.New(st, quiet) })
	})
}

func testCancelOfARunningTask(t *testing.T, lease, within time.Duration, other func(store.Store, *durable.Client) *durable.Client) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c, durable.WithLease(lease))
		ds, causes := make(deliveries, 10), make(chan error)
		w.Handle("h", func(ctx context.Context, d durable.Delivery) error {
			ds <- d
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return ctx.Err()
		}, durable.WithBackoff(0, 0))
		start(t, w)
		schedule(t, c, durable.Task{Key: "k", Every: time.Millisecond}, durable.After(0))
		ds.next(t)
		out, err := other(mem, c).Cancel(ctx, "k")
		require.NoError(t, err)
		require.Equal(t, durable.Stopping, out)
		cancelled := time.Now()
		info, err := c.Get(ctx, "k")
		require.NoError(t, err)
		require.True(t, info.Stopping)
		require.ErrorIs(t, receive(t, causes), durable.ErrCancelled)
		require.LessOrEqual(t, time.Since(cancelled), within)
		gone(t, c, "k")
		require.Empty(t, ds, "no other attempt, and no other run")
	})
}

func TestSchedule_OfARunningTaskFollows(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c)
		ds, end := make(deliveries, 10), make(chan error)
		w.Handle("h", func(_ context.Context, d durable.Delivery) error {
			ds <- d
			return <-end
		})
		start(t, w)
		schedule(t, c, durable.Task{Key: "k", Body: []byte("1")}, durable.After(0))
		require.Equal(t, "1", string(ds.next(t).Body))
		out := schedule(t, c, durable.Task{Key: "k", Body: []byte("2")}, durable.After(0))
		require.Equal(t, durable.Following, out)
		info, err := c.Get(ctx, "k")
		require.NoError(t, err)
		require.True(t, info.Following)
		require.Equal(t, durable.Running, info.State)
		none(t, ds, 50*time.Millisecond)
		end <- errors.New("fails, and is not tried again")
		d := ds.next(t)
		require.Equal(t, "2", string(d.Body))
		require.Equal(t, 1, d.Attempt)
		end <- nil
		gone(t, c, "k")
	})
}

// Two runs that are due at the same time have different idempotency keys. All attempts
// at a run have the same key.
func TestIdempotencyKey_OfRunsDueAtOneTime(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c, durable.WithBackoff(time.Millisecond, time.Millisecond))
		ds, end := make(deliveries, 10), make(chan error)
		w.Handle("h", func(_ context.Context, d durable.Delivery) error {
			ds <- d
			return <-end
		})
		start(t, w)
		past := time.Now().Add(-time.Hour).Truncate(time.Microsecond)
		seen := make(map[string]bool)
		run := func(attempts int) {
			t.Helper()
			d := ds.next(t)
			require.True(t, past.Equal(d.Due))
			require.Equal(t, 1, d.Attempt)
			require.False(t, seen[d.IdempotencyKey()], "another run has the same key")
			seen[d.IdempotencyKey()] = true
			for range attempts - 1 {
				end <- errors.New("fails")
				require.Equal(t, d.IdempotencyKey(), func() string { d := ds.next(t); return d.IdempotencyKey() }())
			}
		}
		schedule(t, c, durable.Task{Key: "k", Every: time.Hour, Missed: durable.FireMissed}, durable.At(past))
		run(2)
		for range 2 {
			out, err := c.Reschedule(ctx, "k", durable.At(past))
			require.NoError(t, err)
			require.Equal(t, durable.Following, out)
			end <- nil
			run(1)
		}
		// The time for which the task was scheduled again has passed, so it runs
		// immediately.
		end <- nil
		d := ds.next(t)
		require.True(t, past.Add(time.Hour).Equal(d.Due))
		end <- nil
		synctest.Wait()
		out, err := c.Reschedule(ctx, "k", durable.At(past))
		require.NoError(t, err)
		require.Equal(t, durable.Moved, out)
		run(1)
		schedule(t, c, durable.Task{Key: "k"}, durable.At(past))
		end <- nil
		run(1)
		for range 2 {
			end <- durable.NoRetry(errors.New("fails"))
			synctest.Wait()
			out, err := c.Requeue(ctx, "k", durable.At(past))
			require.NoError(t, err)
			require.Equal(t, durable.Moved, out)
			run(2)
		}
		end <- nil
		gone(t, c, "k")
	})
}
