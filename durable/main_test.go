package durable_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

var quiet = durable.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))

// soon is how long a test waits, on a busy machine, for an event that should come
// immediately.
const soon = 30 * time.Second

var ctx = context.Background()

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bubble runs a test with a memstore in a synctest bubble, where waiting takes no real
// time.
func bubble(t *testing.T, f func(t *testing.T, st *memstore.Store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, memstore.New(memstore.WithShards(4))) })
}

// start runs a worker until the test ends.
func start(t *testing.T, w *durable.Worker) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- w.Run(context.Background()) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		_ = w.Shutdown(ctx)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// deliveries collects the deliveries of a handler.
type deliveries chan durable.Delivery

func (ds deliveries) handle(_ context.Context, d durable.Delivery) error {
	ds <- d
	return nil
}

func (ds deliveries) next(t *testing.T) durable.Delivery {
	t.Helper()
	return receive(t, ds)
}

func receive[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case x := <-c:
		return x
	case <-time.After(soon):
		t.Fatal("nothing was received")
	}
	panic("not reached")
}

func none[T any](t *testing.T, c <-chan T, d time.Duration) {
	t.Helper()
	select {
	case x := <-c:
		t.Fatalf("received %v", x)
	case <-time.After(d):
	}
}

func schedule(t *testing.T, c *durable.Client, x durable.Task, w durable.When) durable.Outcome {
	t.Helper()
	if x.Handler == "" {
		x.Handler = "h"
	}
	out, err := c.Schedule(ctx, x, w)
	require.NoError(t, err)
	return out
}

// gone waits until a task no longer exists.
func gone(t *testing.T, c *durable.Client, key string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := c.Get(ctx, key)
		return errors.Is(err, durable.ErrNotFound)
	}, soon, 5*time.Millisecond)
}

// becomes waits until a task has a state.
func becomes(t *testing.T, c *durable.Client, key string, s durable.State) durable.Info {
	t.Helper()
	var info durable.Info
	require.Eventually(t, func() bool {
		var err error
		info, err = c.Get(ctx, key)
		return err == nil && info.State == s
	}, soon, 5*time.Millisecond)
	return info
}
