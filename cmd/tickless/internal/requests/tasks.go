package requests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/metrics"
	"github.com/tickless/tickless/observe"
)

// The page shows durable tasks, too: a few reminders and bills a second, in memory, of
// which some fail at first and a few for good.
const (
	taskEvery  = 25 * time.Millisecond
	taskWithin = 20 * time.Second
)

// startTasks schedules durable tasks, and runs them, until stop is called. It returns what
// the page shows of them.
func startTasks() (sources []observe.Source, stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	client := durable.New(memstore.New(), durable.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	worker := durable.NewWorker(client, durable.WithName("mailer"), durable.WithConcurrency(16), durable.WithShutdownTimeout(time.Second))
	worker.Handle("remind", func(ctx context.Context, _ durable.Delivery) error {
		return sleep(ctx, rand.N(20*time.Millisecond))
	})
	worker.Handle("bill", func(ctx context.Context, _ durable.Delivery) error {
		switch rand.IntN(200) {
		case 0:
			return durable.NoRetry(errors.New("no such account"))
		case 1, 2, 3, 4, 5, 6, 7, 8, 9, 10:
			return errors.New("the bank does not answer")
		}
		return sleep(ctx, rand.N(100*time.Millisecond))
	})
	var all sync.WaitGroup
	var err error
	all.Go(func() { err = worker.Run(ctx) })
	all.Go(func() {
		handlers := []string{"remind", "remind", "remind", "bill"}
		for n := 0; sleep(ctx, taskEvery) == nil; n++ {
			task := durable.Task{Key: fmt.Sprintf("order-%d", n), Handler: handlers[n%len(handlers)]}
			// What is cancelled with the context is not missed.
			_, _ = client.Schedule(ctx, task, durable.After(rand.N(taskWithin)))
		}
	})
	stop = func() error {
		cancel()
		all.Wait()
		return err
	}
	return []observe.Source{metrics.Client("orders", client), metrics.Worker("mailer", worker)}, stop
}

// sleep returns the context's error if it ends before.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
