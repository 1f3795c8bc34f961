package benchmarks

import (
	"context"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/redisstore"
)

type tickless struct {
	redis  redis.UniversalClient
	client *durable.Client
}

func newTickless(s *server) impl {
	return newTicklessOn(s.client())
}

func newTicklessOn(r redis.UniversalClient, opts ...redisstore.Option) *tickless {
	return &tickless{redis: r, client: durable.New(redisstore.New(r, opts...))}
}

func (x *tickless) schedule(b *testing.B, ts []task, goroutines int, batch bool) {
	ctx := context.Background()
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			part := ts[g*len(ts)/goroutines : (g+1)*len(ts)/goroutines]
			if !batch {
				for _, t := range part {
					if _, err := x.client.Schedule(ctx, x.task(t), durable.At(t.due)); err != nil {
						b.Error(err)
						return
					}
				}
				return
			}
			const size = 4000
			for len(part) > 0 {
				some := part[:min(size, len(part))]
				part = part[len(some):]
				items := make([]durable.Item, len(some))
				for i, t := range some {
					items[i] = durable.Item{Task: x.task(t), When: durable.At(t.due)}
				}
				if _, err := x.client.ScheduleBatch(ctx, items); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

func (x *tickless) task(t task) durable.Task {
	return durable.Task{Key: t.key, Handler: "bench", Body: t.body}
}

func (x *tickless) work(b *testing.B, handle func([]byte)) func() {
	w := durable.NewWorker(x.client, durable.WithConcurrency(1000))
	w.Handle("bench", func(_ context.Context, d durable.Delivery) error {
		handle(d.Body)
		return nil
	})
	done := make(chan error, 1)
	go func() { done <- w.Run(context.Background()) }()
	return func() {
		if err := w.Shutdown(context.Background()); err != nil {
			b.Error(err)
		}
		if err := <-done; err != nil {
			b.Error(err)
		}
		b.Logf("%+v", w.Stats())
	}
}

func (x *tickless) remaining(b *testing.B) int {
	st, err := x.client.Stats(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	return int(st.Pending + st.Running + st.Dead)
}

func (x *tickless) batches() bool { return true }
func (x *tickless) close()        { x.redis.Close() }
