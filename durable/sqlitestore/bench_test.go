package sqlitestore_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/sqlitestore"
)

// BenchmarkScheduleBatch schedules batches of tasks of 256 bytes.
func BenchmarkScheduleBatch(b *testing.B) {
	st, err := sqlitestore.Open(filepath.Join(b.TempDir(), "tasks.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	c := durable.New(st)
	body := make([]byte, 256)
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		items := make([]durable.Item, 250)
		for i := range items {
			n++
			key := fmt.Sprintf("order-%016x", uint64(n)*0x9e3779b97f4a7c15)
			items[i] = durable.Item{Task: durable.Task{Key: key, Handler: "h", Body: body}, When: durable.After(time.Hour + time.Duration(n*7919%100000)*time.Second)}
		}
		if _, err := c.ScheduleBatch(b.Context(), items); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "tasks/s")
}

// BenchmarkSchedule schedules one task at a time, from one goroutine.
func BenchmarkSchedule(b *testing.B) {
	st, err := sqlitestore.Open(filepath.Join(b.TempDir(), "tasks.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	c := durable.New(st)
	body := make([]byte, 256)
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		n++
		key := fmt.Sprintf("order-%016x", uint64(n)*0x9e3779b97f4a7c15)
		if _, err := c.Schedule(b.Context(), durable.Task{Key: key, Handler: "h", Body: body}, durable.After(time.Hour+time.Duration(n*7919%100000)*time.Second)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkScheduleMany schedules one task at a time from each of 256 goroutines.
func BenchmarkScheduleMany(b *testing.B) {
	st, err := sqlitestore.Open(filepath.Join(b.TempDir(), "tasks.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	c := durable.New(st)
	body := make([]byte, 256)
	var next atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(128)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			n := next.Add(1)
			key := fmt.Sprintf("order-%016x", uint64(n)*0x9e3779b97f4a7c15)
			if _, err := c.Schedule(b.Context(), durable.Task{Key: key, Handler: "h", Body: body}, durable.After(time.Hour+time.Duration(n*7919%100000)*time.Second)); err != nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkDrain runs a worker on tasks that are already due.
func BenchmarkDrain(b *testing.B) {
	st, err := sqlitestore.Open(filepath.Join(b.TempDir(), "tasks.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	c := durable.New(st)
	body := make([]byte, 256)
	items := make([]durable.Item, b.N)
	for i := range items {
		items[i] = durable.Item{Task: durable.Task{Key: fmt.Sprintf("order-%016x", uint64(i)*0x9e3779b97f4a7c15), Handler: "h", Body: body}, When: durable.After(0)}
	}
	if _, err := c.ScheduleBatch(b.Context(), items); err != nil {
		b.Fatal(err)
	}
	var n atomic.Int64
	all := make(chan struct{})
	w := durable.NewWorker(c)
	w.Handle("h", func(context.Context, durable.Delivery) error {
		if n.Add(1) == int64(b.N) {
			close(all)
		}
		return nil
	})
	b.ResetTimer()
	ended := make(chan error, 1)
	go func() { ended <- w.Run(context.Background()) }()
	<-all
	if err := w.Shutdown(context.Background()); err != nil {
		b.Fatal(err)
	}
	<-ended
}
