package durable_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

func ExampleClient_Page() {
	ctx := context.Background()
	client := durable.New(memstore.New())
	for i := range 5 {
		task := durable.Task{Key: fmt.Sprint("order-", i), Handler: "remind"}
		client.Schedule(ctx, task, durable.After(time.Duration(i+1)*time.Hour))
	}
	client.Reschedule(ctx, "order-3", durable.After(time.Minute))

	var next durable.Cursor // of a browser's request, for example
	for {
		page, err := client.Page(ctx, durable.Filter{Handler: "remind"}, next, 2)
		if err != nil {
			panic(err)
		}
		var ids []string
		for _, info := range page.Tasks {
			ids = append(ids, info.ID)
		}
		fmt.Println(ids)
		if next = page.Next; next == "" {
			break
		}
	}
	// Output:
	// [order-3 order-0]
	// [order-1 order-2]
	// [order-4]
}

func ExampleClient_RescheduleBatch() {
	ctx := context.Background()
	client := durable.New(memstore.New())
	key := durable.NewKey()
	client.Schedule(ctx, durable.Task{Key: key, Handler: "remind"}, durable.After(time.Hour))

	out, err := client.RescheduleBatch(ctx, []durable.Move{
		{ID: key, When: durable.After(2 * time.Hour)},
		{ID: "nobody", When: durable.After(0)},
	})
	fmt.Println(out, err)
	// Output: [moved absent] <nil>
}

func ExampleWithDeadHook() {
	ctx := context.Background()
	client := durable.New(memstore.New(), durable.WithLogger(slog.New(slog.DiscardHandler)))
	alerted := make(chan struct{})
	w := durable.NewWorker(client, durable.WithDeadHook(func(ctx context.Context, d durable.Delivery, err error) {
		fmt.Printf("%s died after %d attempt: %v\n", d.Key, d.Attempt, err)
		close(alerted)
	}))
	w.Handle("remind", func(context.Context, durable.Delivery) error {
		return durable.NoRetry(errors.New("no such address"))
	})
	go w.Run(ctx)
	client.Schedule(ctx, durable.Task{Key: "order-17", Handler: "remind"}, durable.After(0))
	<-alerted
	w.Shutdown(ctx)
	// Output: order-17 died after 1 attempt: no such address
}
