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
)

func TestWithDeadHook(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		type death struct {
			key     string
			attempt int
			err     error
		}
		deaths := make(chan death, 10)
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c, durable.WithMaxAttempts(2), durable.WithDeadHook(func(ctx context.Context, d durable.Delivery, err error) {
			if _, err := c.Get(ctx, d.Key); err != nil && !errors.Is(err, durable.ErrNotFound) {
				t.Error(err)
			}
			deaths <- death{d.Key, d.Attempt, err}
			if d.Key == "panic" {
				panic("in the hook")
			}
		}))
		failure := errors.New("failure")
		w.Handle("fails", func(context.Context, durable.Delivery) error { return failure })
		w.Handle("never", func(context.Context, durable.Delivery) error { return durable.NoRetry(failure) })
		w.Handle("well", func(context.Context, durable.Delivery) error { return nil })
		other := make(chan string, 1)
		w.Handle("other", func(context.Context, durable.Delivery) error { return durable.NoRetry(failure) },
			durable.WithDeadHook(func(_ context.Context, d durable.Delivery, _ error) { other <- d.Key }))
		start(t, w)

		schedule(t, c, durable.Task{Key: "panic", Handler: "fails"}, durable.After(0))
		got := receive(t, deaths)
		require.Equal(t, "panic", got.key)
		require.Equal(t, 2, got.attempt)
		require.ErrorIs(t, got.err, failure)

		schedule(t, c, durable.Task{Key: "repeats", Handler: "never", Every: time.Hour}, durable.After(0))
		require.Equal(t, "repeats", receive(t, deaths).key)
		schedule(t, c, durable.Task{Key: "c", Handler: "other"}, durable.After(0))
		require.Equal(t, "c", receive(t, other))
		schedule(t, c, durable.Task{Key: "missed", Handler: "well", Missed: durable.DeadMissed, MissedAfter: time.Second},
			durable.At(time.Now().Add(-time.Minute)))
		require.Equal(t, "missed", receive(t, deaths).key)

		schedule(t, c, durable.Task{Key: "d", Handler: "well"}, durable.After(0))
		gone(t, c, "d")
		none(t, deaths, time.Minute)
		require.Panics(t, func() { durable.WithDeadHook(nil) })
	})
}

func TestWithDeadHook_RunWaits(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		for _, wait := range []bool{true, false} {
			called, ended := make(chan bool, 1), make(chan bool, 1)
			w := durable.NewWorker(c, durable.WithDeadHook(func(ctx context.Context, _ durable.Delivery, _ error) {
				called <- true
				select {
				case <-ctx.Done():
					ended <- false
				case <-time.After(10 * time.Second):
					ended <- true
				}
			}))
			w.Handle("h", func(context.Context, durable.Delivery) error { return durable.NoRetry(errors.New("failure")) })
			run := make(chan error, 1)
			go func() { run <- w.Run(ctx) }()
			schedule(t, c, durable.Task{}, durable.After(0))
			receive(t, called)
			if wait {
				require.NoError(t, w.Shutdown(ctx))
			} else {
				require.NoError(t, w.Close())
			}
			require.NoError(t, receive(t, run))
			synctest.Wait()
			require.Equal(t, wait, receive(t, ended))
		}
	})
}
