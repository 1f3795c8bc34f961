package durable_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

// BenchmarkSchedule schedules one task at a time, and batches of 1,000.
func BenchmarkSchedule(b *testing.B) {
	b.Run("by=one", func(b *testing.B) {
		c := durable.New(memstore.New(), quiet)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			x := durable.Task{Key: fmt.Sprint(i), Handler: "h"}
			if _, err := c.Schedule(ctx, x, durable.After(time.Hour)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("by=1000", func(b *testing.B) {
		c := durable.New(memstore.New(), quiet)
		items := make([]durable.Item, 1000)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			for j := range items {
				items[j] = durable.Item{Task: durable.Task{Key: fmt.Sprint(i, " ", j), Handler: "h"}, When: durable.After(time.Hour)}
			}
			if _, err := c.ScheduleBatch(ctx, items); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "tasks/s")
	})
}

// BenchmarkDrain measures the cost of the Client and the Worker. It runs 10,000 due
// tasks, whose handler does nothing, on a store in memory.
func BenchmarkDrain(b *testing.B) {
	const n = 10_000
	c := durable.New(memstore.New(), quiet)
	items := make([]durable.Item, n)
	for i := range items {
		items[i] = durable.Item{Task: durable.Task{Key: fmt.Sprint(i), Handler: "h"}, When: durable.After(0)}
	}
	var left atomic.Int64
	done := make(chan struct{})
	w := durable.NewWorker(c)
	w.Handle("h", func(context.Context, durable.Delivery) error {
		if left.Add(-1) == 0 {
			done <- struct{}{}
		}
		return nil
	})
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	b.ReportAllocs()
	for b.Loop() {
		left.Store(n)
		if _, err := c.ScheduleBatch(ctx, items); err != nil {
			b.Fatal(err)
		}
		<-done
	}
	b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds(), "tasks/s")
	if err := w.Shutdown(ctx); err != nil {
		b.Fatal(err)
	}
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}
