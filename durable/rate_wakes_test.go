package durable_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

// While a task waits for a handler's rate, a Worker still hears of tasks of other handlers.
func TestWorker_HearsOfTasksWhileARateWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := durable.New(memstore.New(), quiet)
		w := durable.NewWorker(c, durable.WithConcurrency(4))
		w.Handle("two", func(ctx context.Context, d durable.Delivery) error { <-ctx.Done(); return ctx.Err() }, durable.WithHandlerConcurrency(2))
		w.Handle("rated", func(context.Context, durable.Delivery) error { return nil }, durable.WithRate(0.001))
		start(t, w)
		time.Sleep(time.Second)
		schedule(t, c, durable.Task{Key: "r1", Handler: "rated"}, durable.After(0))
		time.Sleep(time.Second)
		schedule(t, c, durable.Task{Key: "r2", Handler: "rated"}, durable.After(0))
		time.Sleep(time.Second)
		for _, key := range []string{"t1", "t2"} {
			schedule(t, c, durable.Task{Key: key, Handler: "two"}, durable.After(0))
			time.Sleep(time.Second)
		}
		synctest.Wait()
		st, err := c.Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, st.Running)
		ctx, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		_ = w.Shutdown(ctx)
	})
}
