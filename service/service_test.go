package service

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

// Records beyond the limit are deleted, first those that expire first. The key of an
// Idempotency-Key stays taken.
func TestService_RecordBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quiet := slog.New(slog.DiscardHandler)
		client := durable.New(memstore.New(memstore.WithShards(1)), durable.WithLogger(quiet))
		ctx, cancel := context.WithCancel(t.Context())
		s := New(client, Config{Log: quiet, RecordBytes: 100_000})
		ended := make(chan struct{})
		go func() { s.Run(ctx); close(ended) }()
		w := durable.NewWorker(client)
		w.Handle("http", func(_ context.Context, d durable.Delivery) error {
			return d.SetResult([]byte(strings.Repeat("x", 1000)))
		})
		workerEnded := make(chan error, 1)
		go func() { workerEnded <- w.Run(ctx) }()
		task := func(i int) durable.Task {
			return durable.Task{Key: fmt.Sprint("k", i), Handler: "http", Retention: durable.Retention{For: 24 * time.Hour, Runs: 100}, Unique: time.Duration(i%2) * time.Hour}
		}
		for i := range 500 {
			_, err := client.Schedule(ctx, task(i), durable.After(time.Duration(i)*time.Millisecond))
			require.NoError(t, err)
		}
		time.Sleep(2 * time.Second)
		st, err := client.Stats(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 1000, st.Past, "each run has a head")
		time.Sleep(5 * time.Minute)
		page, err := client.RunsPage(ctx, durable.Filter{}, "", 1000)
		require.NoError(t, err)
		require.Less(t, len(page.Runs), 80)
		require.Greater(t, len(page.Runs), 10)
		for i, r := range page.Runs {
			require.Equal(t, fmt.Sprint("k", 499-i), r.Key, "the latest stay")
		}
		outcome, err := client.Schedule(ctx, task(1), durable.After(0))
		require.NoError(t, err)
		require.Equal(t, durable.Kept, outcome)
		cancel()
		<-ended
		require.NoError(t, <-workerEnded)
	})
}
