package durable_test

import (
	"context"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

// A Worker is seen with what it runs, in all shards together, until its shutdown.
func TestWorkers_ShowWhatRuns(t *testing.T) {
	bubble(t, func(t *testing.T, _ *memstore.Store) {
		c := durable.New(memstore.New(memstore.WithShards(4)), quiet)
		workers, err := c.Workers(t.Context())
		require.NoError(t, err)
		require.Empty(t, workers)

		w := durable.NewWorker(c, durable.WithName("mail"), durable.WithVersion("v1.2.3"), durable.WithConcurrency(8), durable.WithLease(30*time.Second))
		w.Handle("slow", func(ctx context.Context, _ durable.Delivery) error {
			<-ctx.Done()
			return ctx.Err()
		}, durable.WithHandlerConcurrency(3), durable.WithRate(5))
		w.Handle("other", func(context.Context, durable.Delivery) error { return nil })
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		began := time.Now()
		for _, key := range []string{"a", "b", "c"} {
			schedule(t, c, durable.Task{Key: key, Handler: "slow"}, durable.At(began.Add(map[string]time.Duration{"a": 3, "b": 1, "c": 2}[key]*time.Minute)))
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait() // no round is under way

		workers, err = c.Workers(t.Context())
		require.NoError(t, err)
		require.Len(t, workers, 1)
		x := workers[0]
		host, _ := os.Hostname()
		require.Equal(t, []any{"mail", host, os.Getpid(), "v1.2.3", 8, 30 * time.Second, false}, []any{x.Name, x.Host, x.PID, x.Version, x.Places, x.Lease, x.Lost})
		require.True(t, x.Started.Equal(began), x.Started)
		require.WithinRange(t, x.Contact, time.Now().Add(-30*time.Second), time.Now(), "it extends its leases")
		require.Equal(t, []durable.WorkerHandler{{Handler: "other"}, {Handler: "slow", Running: 3, Places: 3, Rate: 5}}, x.Handlers)
		require.Len(t, x.Running, 3)
		for i, id := range []string{"b", "c", "a"} {
			require.Equal(t, id, x.Running[i].ID)
			require.WithinDuration(t, began.Add(time.Duration(i+1)*time.Minute), x.Running[i].Since, time.Millisecond)
			info, err := c.Get(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, x.ID, info.Worker)
		}

		cancel()
		require.NoError(t, <-ended)
		workers, err = c.Workers(t.Context())
		require.NoError(t, err)
		require.Empty(t, workers)
		info, err := c.Get(t.Context(), "a")
		require.NoError(t, err)
		require.Empty(t, info.Worker, "the task was handed back")
	})
}
