package durable_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

func ExampleHandleJSON() {
	type reminder struct {
		Order int    `json:"order"`
		To    string `json:"to"`
	}
	ctx := context.Background()
	client := durable.New(memstore.New(), durable.WithLogger(slog.New(slog.DiscardHandler)))

	done := make(chan struct{})
	w := durable.NewWorker(client)
	durable.HandleJSON(w, "remind", func(ctx context.Context, d durable.Delivery, r reminder) error {
		fmt.Printf("order %d: remind %s\n", r.Order, r.To)
		close(done)
		return nil
	})
	go w.Run(ctx)

	body, _ := json.Marshal(reminder{Order: 17, To: "ann@example.com"})
	client.Schedule(ctx, durable.Task{Handler: "remind", Body: body}, durable.After(time.Millisecond))
	<-done
	w.Shutdown(ctx)
	// Output: order 17: remind ann@example.com
}

func TestHandleJSON(t *testing.T) {
	bubble(t, func(t *testing.T, mem *memstore.Store) {
		c := durable.New(mem, quiet)
		w := durable.NewWorker(c)
		got := make(chan map[string]int, 1)
		durable.HandleJSON(w, "h", func(_ context.Context, d durable.Delivery, v map[string]int) error {
			got <- v
			return nil
		})
		start(t, w)
		schedule(t, c, durable.Task{Body: []byte(`{"a":1}`)}, durable.After(time.Second))
		require.Equal(t, map[string]int{"a": 1}, receive(t, got))
		schedule(t, c, durable.Task{}, durable.After(time.Second))
		require.Nil(t, receive(t, got))

		// Perhaps a worker of a newer version can decode the body, so the task is retried.
		schedule(t, c, durable.Task{Key: "k", MaxAttempts: 2, Body: []byte(`{"a":"b"}`)}, durable.After(0))
		info := becomes(t, c, "k", durable.Dead)
		require.Equal(t, 2, info.Attempts)
		require.Contains(t, info.Failures[0].Error, "not the JSON of a map[string]int")

		require.Panics(t, func() { durable.HandleJSON[int](durable.NewWorker(c), "h", nil) })
	})
}
