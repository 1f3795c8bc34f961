package stores

import (
	"context"
	"io"
	"log/slog"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/store"
)

// tickless runs tasks with package durable, on any of its stores.
type tickless struct {
	client *durable.Client
	closer func() error // nil if there is nothing to close
}

func newTickless(st store.Store, closer func() error) *tickless {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	return &tickless{durable.New(st, durable.WithLogger(log)), closer}
}

func (x *tickless) schedule(ctx context.Context, tasks []task) error {
	if len(tasks) == 1 {
		t := &tasks[0]
		_, err := x.client.Schedule(ctx, durable.Task{Key: t.key, Handler: "h", Body: t.body}, durable.At(t.due))
		return err
	}
	items := make([]durable.Item, len(tasks))
	for i, t := range tasks {
		items[i] = durable.Item{Task: durable.Task{Key: t.key, Handler: "h", Body: t.body}, When: durable.At(t.due)}
	}
	_, err := x.client.ScheduleBatch(ctx, items)
	return err
}

func (x *tickless) work(handle func(body []byte)) (func() error, error) {
	w := durable.NewWorker(x.client, durable.WithUnsafe())
	w.Handle("h", func(_ context.Context, d durable.Delivery) error {
		handle(d.Body)
		return nil
	})
	ended := make(chan error, 1)
	go func() { ended <- w.Run(context.Background()) }()
	return func() error {
		if err := w.Shutdown(context.Background()); err != nil {
			return err
		}
		return <-ended
	}, nil
}

func (x *tickless) remaining(ctx context.Context) (int64, error) {
	st, err := x.client.Stats(ctx)
	return st.Pending + st.Running + st.Dead, err
}

func (x *tickless) close() error {
	if x.closer == nil {
		return nil
	}
	return x.closer()
}
