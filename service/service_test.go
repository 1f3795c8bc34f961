package service

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
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

// Behind a proxy that does not strip the prefix, no answer leads out of it.
func TestService_Prefix(t *testing.T) {
	s := New(durable.New(memstore.New()), Config{Prefix: "/tickless/", Log: slog.New(slog.DiscardHandler)})
	for path, want := range map[string]string{
		"/tickless":                  "/tickless/",
		"/tickless//v1/stats":        "/tickless/v1/stats",
		"/tickless/v1/../v1/tasks?x": "/tickless/v1/tasks?x",
	} {
		w := get(s, path, nil)
		require.Equal(t, want, w.Header().Get("Location"), path)
		require.Equal(t, 3, w.Code/100, path)
	}
	for _, path := range []string{"/", "/v1/stats", "/ticklessx/v1/stats", "/ticklessv1/stats"} {
		require.Equal(t, 404, get(s, path, nil).Code, path)
	}
	r := httptest.NewRequest("PUT", "/tickless/v1/tasks/a%2Fb?", strings.NewReader(`{"url":"http://x.example/","delay":"1h"}`))
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	require.Equal(t, 201, w.Code, w.Body)
	require.Equal(t, "/tickless/v1/tasks/a%2Fb", w.Header().Get("Location"))
	require.Equal(t, 200, get(s, w.Header().Get("Location"), nil).Code)
}
