package durable_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

func TestShutdown_WaitsForHandlersAndHandsBackTheRest(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c)
		ds := make(deliveries, 10)
		quick, causes := make(chan struct{}), make(chan error, 10)
		w.Handle("h", func(ctx context.Context, d durable.Delivery) error {
			ds <- d
			if d.Key == "quick" {
				<-quick
				return nil
			}
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return ctx.Err()
		})
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		schedule(t, c, durable.Task{Key: "quick"}, durable.After(0))
		schedule(t, c, durable.Task{Key: "slow"}, durable.After(0))
		ds.next(t)
		ds.next(t)

		stop, cancel := context.WithCancel(ctx)
		result := make(chan error, 1)
		go func() { result <- w.Shutdown(stop) }()
		none(t, done, 50*time.Millisecond)
		close(quick)
		gone(t, c, "quick")
		none(t, done, 50*time.Millisecond)
		cancel()
		require.ErrorIs(t, receive(t, causes), durable.ErrClosed)
		require.ErrorIs(t, receive(t, result), context.Canceled)
		require.NoError(t, receive(t, done))
		info, err := c.Get(ctx, "slow")
		require.NoError(t, err)
		require.Equal(t, durable.Pending, info.State)
		require.Zero(t, info.Attempts, "an attempt that was handed back does not count")
		require.Zero(t, w.Stats().Running)

		// The next worker gets the task immediately.
		next := durable.NewWorker(c)
		next.Handle("h", ds.handle)
		start(t, next)
		d := ds.next(t)
		require.Equal(t, "slow", d.Key)
		require.Equal(t, 1, d.Attempt)
	})
}

func TestRun_EndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c, durable.WithShutdownTimeout(50*time.Millisecond))
		ds := make(deliveries, 10)
		hang := make(chan struct{})
		w.Handle("h", func(ctx context.Context, d durable.Delivery) error {
			ds <- d
			<-hang // heeds nothing
			return nil
		})
		first, cancel := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- w.Run(first) }()
		schedule(t, c, durable.Task{Key: "k"}, durable.After(0))
		ds.next(t)
		cancel()
		require.NoError(t, receive(t, done))
		info, err := c.Get(ctx, "k")
		require.NoError(t, err)
		require.Equal(t, durable.Pending, info.State, "handed back, although the handler has not returned")

		// Call Run while a handler of the previous Run is still running. That handler
		// later releases a place of the previous Run.
		again, cancel := context.WithCancel(ctx)
		go func() { done <- w.Run(again) }()
		d := ds.next(t)
		require.Equal(t, 1, d.Attempt)
		require.ErrorContains(t, w.Run(ctx), "is running")
		close(hang)
		gone(t, c, "k")
		require.Eventually(t, func() bool { return w.Stats().Running == 0 }, soon, time.Millisecond)
		cancel()
		require.NoError(t, receive(t, done))
		require.Zero(t, w.Stats().Lost)

		require.NoError(t, w.Shutdown(ctx))
		require.ErrorIs(t, w.Run(ctx), durable.ErrClosed)
		w = durable.NewWorker(c)
		require.NoError(t, w.Shutdown(ctx), "before Run")
		require.ErrorIs(t, w.Run(ctx), durable.ErrClosed)
	})
}
