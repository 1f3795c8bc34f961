package stores

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tickless/tickless/durable"
)

// BenchmarkStoreHandlers runs due tasks with one worker that has 1, 200 or 2,000 handlers.
// Each handler has as many of the tasks. It measures until all are deleted.
func BenchmarkStoreHandlers(b *testing.B) {
	n := choose(500, 20_000)
	for _, handlers := range []int{1, 200, 2000} {
		b.Run(fmt.Sprintf("handlers=%d", handlers), func(b *testing.B) {
			each(b, func(b *testing.B, x side) {
				s, ok := x.(*tickless)
				if !ok {
					b.Skip("a table has no handlers")
				}
				items := make([]durable.Item, n)
				for i, t := range tasks(n, time.Now) {
					items[i] = durable.Item{Task: durable.Task{Key: t.key, Handler: fmt.Sprint("h", i%handlers), Body: t.body}, When: durable.At(t.due)}
				}
				if _, err := s.client.ScheduleBatch(b.Context(), items); err != nil {
					b.Fatal(err)
				}
				var handled atomic.Int64
				all := make(chan struct{})
				w := durable.NewWorker(s.client, durable.WithUnsafe())
				for i := range handlers {
					w.Handle(fmt.Sprint("h", i), func(context.Context, durable.Delivery) error {
						if handled.Add(1) == int64(n) {
							close(all)
						}
						return nil
					})
				}
				began := time.Now()
				ended := make(chan error, 1)
				go func() { ended <- w.Run(context.Background()) }()
				<-all
				for remaining(b, x) > 0 {
					time.Sleep(time.Millisecond)
				}
				b.ReportMetric(float64(n)/time.Since(began).Seconds(), "tasks/s")
				if err := w.Shutdown(context.Background()); err != nil {
					b.Error(err)
				}
				if err := <-ended; err != nil {
					b.Error(err)
				}
			})
		})
	}
}
