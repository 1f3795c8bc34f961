package durable_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

// A tenant with a long backlog delays the others by at most what is running. The limit holds
// over all Workers, and Explain names it.
func TestClientSetLimit_Groups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := durable.New(memstore.New(memstore.WithShards(1)), quiet)
		require.NoError(t, c.SetLimit(ctx, "h", durable.Limit{GroupConcurrency: 2}))
		var mu sync.Mutex
		var groups []string
		ran := func() []string { // sorted
			mu.Lock()
			defer mu.Unlock()
			return slices.Sorted(slices.Values(groups))
		}
		for range 2 {
			w := durable.NewWorker(c, durable.WithConcurrency(8), durable.WithLease(10*time.Second))
			w.Handle("h", func(_ context.Context, d durable.Delivery) error {
				mu.Lock()
				groups = append(groups, d.Group)
				mu.Unlock()
				time.Sleep(time.Second)
				return nil
			})
			start(t, w)
		}
		for i := range 100 {
			schedule(t, c, durable.Task{Key: fmt.Sprint("big", i), Handler: "h", Group: "big"}, durable.After(0))
		}
		synctest.Wait()
		require.Len(t, ran(), 2)
		r := explain(t, c, "big99", durable.ReasonGroupLimit)
		require.Equal(t, 2, r[0].Count)
		for i := range 4 {
			schedule(t, c, durable.Task{Key: fmt.Sprint("small", i), Handler: "h", Group: fmt.Sprint("small", i)}, durable.After(0))
		}
		schedule(t, c, durable.Task{Key: "none", Handler: "h"}, durable.After(0))
		synctest.Wait()
		require.Equal(t, []string{"", "big", "big", "small0", "small1", "small2", "small3"}, ran())
		time.Sleep(50 * time.Second)
		synctest.Wait()
		require.Len(t, ran(), 105)

		require.NoError(t, c.SetLimit(ctx, "h", durable.Limit{GroupRate: 0.1}))
		for i := range 3 {
			schedule(t, c, durable.Task{Key: fmt.Sprint("rate", i), Handler: "h", Group: "rate"}, durable.After(0))
		}
		time.Sleep(5 * time.Second)
		require.Len(t, ran(), 106)
		explain(t, c, "rate2", durable.ReasonGroupRate)
		time.Sleep(16 * time.Second)
		require.Len(t, ran(), 108)
	})
}

// An export has the group, and a filter selects it.
func TestExport_Groups(t *testing.T) {
	from, to := durable.New(memstore.New(), quiet), memstore.New()
	task := durable.Task{Key: "k", Handler: "h", Group: "tenant 7", Body: []byte("body")}
	schedule(t, from, task, durable.After(time.Hour))
	schedule(t, from, durable.Task{Key: "other", Handler: "h"}, durable.After(time.Hour))
	var file bytes.Buffer
	_, err := durable.Export(ctx, &file, from.Store())
	require.NoError(t, err)
	_, err = durable.Import(ctx, to, &file)
	require.NoError(t, err)
	var found []durable.Task
	for info, err := range durable.New(to, quiet).List(ctx, durable.Filter{Group: "tenant 7"}) {
		require.NoError(t, err)
		found = append(found, info.Task)
	}
	require.Equal(t, []durable.Task{task}, found)
	_, err = from.Schedule(ctx, durable.Task{Handler: "h", Group: "a\nb"}, durable.After(0))
	require.ErrorIs(t, err, durable.ErrInvalid)
}
