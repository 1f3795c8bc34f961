package durable_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

func ExampleNext() {
	ctx := context.Background()
	client := durable.New(memstore.New())
	report := durable.Task{Key: "report", Handler: "report", Cron: "0 9 * * 1-5", Zone: "Europe/Berlin",
		Start: time.Date(2031, 3, 29, 0, 0, 0, 0, time.UTC)} // a Saturday
	client.Schedule(ctx, report, durable.Next())
	info, _ := client.Get(ctx, "report")
	fmt.Println(info.At.UTC())

	client.PauseTask(ctx, "report")
	report.Cron = "30 8 * * 1-5"
	client.Schedule(ctx, report, durable.Next(), durable.OnlyChanged()) // as when the program starts again
	info, _ = client.Get(ctx, "report")
	fmt.Println(info.Paused)
	client.ResumeTask(ctx, "report")
	info, _ = client.Get(ctx, "report")
	fmt.Println(info.At.UTC())
	// Output:
	// 2031-03-31 07:00:00 +0000 UTC
	// true
	// 2031-03-31 06:30:00 +0000 UTC
}

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
