package durable_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

// A queue moves to a store of another number of shards, with all that was tried.
func TestCopy(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c)
		w.Handle("h", func(_ context.Context, d durable.Delivery) error {
			if d.Key[0] == 'd' {
				return durable.NoRetry(errors.New("no"))
			}
			return durable.RetryAfter(errors.New("later"), time.Hour)
		})
		for i := range 1000 {
			schedule(t, c, durable.Task{Key: fmt.Sprint("pending", i), Body: []byte("body")}, durable.After(10*time.Minute))
			schedule(t, c, durable.Task{Key: fmt.Sprint("tried", i)}, durable.After(0))
			schedule(t, c, durable.Task{Key: fmt.Sprint("dead", i), Every: time.Hour * time.Duration(i%2)}, durable.After(0))
		}
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		synctest.Wait()
		require.NoError(t, w.Shutdown(ctx))
		require.NoError(t, <-done)

		to := memstore.New(memstore.WithShards(16))
		f := &faulty{Store: to, lose: some(1, 3)}
		copied := 0
		for {
			n, err := durable.Copy(ctx, f, mem)
			copied += n
			if err == nil {
				break
			}
			require.ErrorIs(t, err, errFault)
			if copied > 0 {
				f.lose = nil
			}
		}
		list := func(c *durable.Client) map[string]durable.Info {
			all := make(map[string]durable.Info)
			for info, err := range c.List(ctx, durable.Filter{}) {
				require.NoError(t, err)
				all[info.Task.Key+" "+info.State.String()] = info
			}
			return all
		}
		want := list(c)
		require.Len(t, want, 3500)
		require.Equal(t, want, list(durable.New(to, quiet)))
		n, err := durable.Copy(ctx, to, mem)
		require.NoError(t, err)
		require.Zero(t, n, "it is all there")
	})
}
