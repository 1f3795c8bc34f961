package durable_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

func TestWithDeadLimit(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c, durable.WithMaxAttempts(1), durable.WithDeadLimit(time.Hour, 300))
		w.Handle("h", func(context.Context, durable.Delivery) error { return errors.New("no") })
		start(t, w)
		for i := range 1000 {
			schedule(t, c, durable.Task{Key: fmt.Sprint(i)}, durable.After(time.Duration(i)*time.Millisecond))
		}
		dead := func() int64 {
			st, err := c.Stats(ctx)
			require.NoError(t, err)
			return st.Dead
		}
		time.Sleep(59 * time.Second)
		require.EqualValues(t, 1000, dead())
		time.Sleep(2 * time.Second)
		require.EqualValues(t, 300, dead(), "300 dead letters stay")
		_, err := c.Get(ctx, "699")
		require.ErrorIs(t, err, durable.ErrNotFound)
		_, err = c.Get(ctx, "700")
		require.NoError(t, err, "the latest dead letters stay")
		time.Sleep(58 * time.Minute)
		require.EqualValues(t, 300, dead())
		time.Sleep(3 * time.Minute)
		require.Zero(t, dead(), "all are too old")
		require.EqualValues(t, 1000, w.Stats().Purged)
	})
	require.PanicsWithValue(t, "durable: WithDeadLimit: must not be negative, got 0s and -1", func() { durable.WithDeadLimit(0, -1) })
}
