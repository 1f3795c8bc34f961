package durable_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

func Example() {
	ctx := context.Background()
	client := durable.New(memstore.New(), durable.WithLogger(slog.New(slog.DiscardHandler)))

	done := make(chan struct{})
	w := durable.NewWorker(client)
	w.Handle("remind", func(ctx context.Context, d durable.Delivery) error {
		fmt.Printf("%s: %s, attempt %d\n", d.Key, d.Body, d.Attempt)
		if d.Attempt == 1 {
			return durable.RetryAfter(fmt.Errorf("the mail server is busy"), 10*time.Millisecond)
		}
		close(done)
		return nil
	})
	go w.Run(ctx)

	task := durable.Task{Key: "order-17", Handler: "remind", Body: []byte("pay, please")}
	out, _ := client.Schedule(ctx, task, durable.After(time.Hour))
	fmt.Println(out)
	out, _ = client.Reschedule(ctx, "order-17", durable.After(time.Millisecond))
	fmt.Println(out)
	<-done
	w.Shutdown(ctx)
	out, _ = client.Cancel(ctx, "order-17")
	fmt.Println(out)
	// Output:
	// created
	// moved
	// order-17: pay, please, attempt 1
	// order-17: pay, please, attempt 2
	// absent
}
