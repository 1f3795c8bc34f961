package redisstore_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/redisstore"
	"github.com/tickless/tickless/durable/redisstore/internal/redistest"
)

// A task that is due now begins at once in an idle worker, although the wake-up may come to
// others first: to workers without a free place, or whose handler has reached its limit.
func TestWait_BesideWorkersThatCannotUseIt(t *testing.T) {
	for name, x := range map[string]struct {
		others  int
		places  int
		handler string // of the tasks that take long
		options []durable.HandlerOption
	}{
		"four full":          {4, 1, "slow", nil},
		"three at the limit": {3, 4, "fast", []durable.HandlerOption{durable.WithHandlerConcurrency(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			began, release := make(chan string, 10), make(chan struct{})
			newWorker := func(name string) *durable.Client {
				rdb := server.Client()
				t.Cleanup(func() { rdb.Close() })
				st := redisstore.New(rdb, redisstore.WithRecheck(time.Hour)) // only a wake-up makes a worker claim
				t.Cleanup(func() { st.Close() })
				c := durable.New(st, durable.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
				w := durable.NewWorker(c, durable.WithConcurrency(x.places), durable.WithUnsafe())
				handle := func(_ context.Context, d durable.Delivery) error {
					began <- name
					if len(d.Body) > 0 {
						<-release
					}
					return nil
				}
				w.Handle("slow", handle, x.options...)
				w.Handle("fast", handle, x.options...)
				ended := make(chan error, 1)
				go func() { ended <- w.Run(t.Context()) }()
				t.Cleanup(func() { require.NoError(t, <-ended) })
				return c
			}
			for i := range x.others {
				c := newWorker("full")
				_, err := c.Schedule(t.Context(), durable.Task{Key: fmt.Sprint(i), Handler: x.handler, Body: []byte("x")}, durable.After(0))
				require.NoError(t, err)
				require.Equal(t, "full", <-began)
			}
			c := newWorker("idle")
			for i := range 8 {
				_, err := c.Schedule(t.Context(), durable.Task{Key: fmt.Sprint("fast", i), Handler: "fast"}, durable.After(0))
				require.NoError(t, err)
				begin := time.Now()
				select {
				case worker := <-began:
					require.Equal(t, "idle", worker)
				case <-time.After(time.Minute):
					t.Fatal("the wake-up was lost")
				}
				t.Log("began after", time.Since(begin))
			}
			close(release)
		})
	}
}
