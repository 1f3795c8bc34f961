package stores

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// choose returns the size of a workload: short under -short, else usual.
func choose[T any](short, usual T) T {
	if testing.Short() {
		return short
	}
	return usual
}

// each runs work as a sub-benchmark for every store, each time in a new folder.
func each(b *testing.B, work func(b *testing.B, x side)) {
	for _, s := range sides {
		b.Run("impl="+s.name, func(b *testing.B) {
			for b.Loop() {
				x := open(b, s.open)
				runtime.GC()
				work(b, x)
				if err := x.close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(0, "ns/op") // 0 hides it: it includes the waiting
		})
	}
}

func open(tb testing.TB, f func(tb testing.TB, dir string) (side, error)) side {
	tb.Helper()
	x, err := f(tb, tb.TempDir())
	if errors.Is(err, errNoServer) {
		tb.Skip(err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return x
}

// BenchmarkStoreSchedule schedules tasks for times within 30 days. Each caller waits until
// its tasks are acknowledged.
func BenchmarkStoreSchedule(b *testing.B) {
	const month = 30 * 24 * time.Hour
	for _, w := range []struct{ callers, batch int }{{1, 1}, {64, 1}, {256, 1}, {1, 250}, {1, 1000}} {
		b.Run(fmt.Sprintf("callers=%d/batch=%d", w.callers, w.batch), func(b *testing.B) {
			each(b, func(b *testing.B, x side) {
				begin := time.Now()
				end := begin.Add(choose(20*time.Millisecond, time.Second))
				later := func() time.Time { return begin.Add(time.Hour + rand.N(month)) }
				var done atomic.Int64
				var all sync.WaitGroup
				for range w.callers {
					all.Go(func() {
						for time.Now().Before(end) {
							if err := x.schedule(b.Context(), tasks(w.batch, later)); err != nil {
								b.Error(err)
								return
							}
							done.Add(int64(w.batch))
						}
					})
				}
				all.Wait()
				b.ReportMetric(float64(done.Load())/time.Since(begin).Seconds(), "tasks/s")
			})
		})
	}
}

// BenchmarkStoreBurst schedules tasks for the same time. It measures how long after that
// time the last task has been handled and deleted.
func BenchmarkStoreBurst(b *testing.B) {
	n := choose(500, 40_000)
	each(b, func(b *testing.B, x side) {
		due := time.Now().Add(timeToSchedule(n))
		fill(b, x, tasks(n, func() time.Time { return due }))
		if time.Now().After(due) {
			b.Fatalf("scheduling %d tasks took too long: it ended after they were due", n)
		}
		var handled atomic.Int64
		all := make(chan struct{})
		stop := work(b, x, func([]byte) {
			if handled.Add(1) == int64(n) {
				close(all)
			}
		})
		<-all
		for remaining(b, x) > 0 {
			time.Sleep(time.Millisecond)
		}
		b.ReportMetric(float64(n)/time.Since(due).Seconds(), "tasks/s")
		stop()
	})
}

// BenchmarkStoreLate schedules tasks for random times, so that some are due each second. It
// measures how late their handlers start.
func BenchmarkStoreLate(b *testing.B) {
	for _, rate := range []int{500, 1000} {
		b.Run(fmt.Sprintf("rate=%d", rate), func(b *testing.B) { late(b, rate) })
	}
}

func late(b *testing.B, rate int) {
	span := choose(200*time.Millisecond, 7*time.Second)
	n := int(float64(rate) * span.Seconds())
	each(b, func(b *testing.B, x side) {
		begin := time.Now().Add(timeToSchedule(n))
		var mu sync.Mutex
		var lates []time.Duration
		all := make(chan struct{})
		stop := work(b, x, func(body []byte) {
			late := time.Since(dueOf(body))
			mu.Lock()
			defer mu.Unlock()
			if lates = append(lates, late); len(lates) == n {
				close(all)
			}
		})
		fill(b, x, tasks(n, func() time.Time { return begin.Add(rand.N(span)) }))
		<-all
		stop()
		slices.Sort(lates)
		if lates[0] < 0 {
			b.Fatalf("a task was %v early", -lates[0])
		}
		b.ReportMetric(float64(lates[n/2])/1e6, "p50-ms")
		b.ReportMetric(float64(lates[n*99/100])/1e6, "p99-ms")
	})
}

// timeToSchedule returns the time that a benchmark allows for scheduling n tasks.
func timeToSchedule(n int) time.Duration { return time.Second + time.Duration(n)*150*time.Microsecond }

// TestSides checks that each store runs every task, and none early.
func TestSides(t *testing.T) {
	for _, s := range sides {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			x := open(t, s.open)
			var mu sync.Mutex
			handled := map[string]int{}
			stop := work(t, x, func(body []byte) {
				mu.Lock()
				defer mu.Unlock()
				if time.Now().Before(dueOf(body)) {
					t.Error("a task is early")
				}
				handled[string(body)]++
			})
			const n = 120
			due := time.Now().Add(300 * time.Millisecond)
			for _, batch := range []int{1, 20, 99} {
				if err := x.schedule(t.Context(), tasks(batch, func() time.Time { return due })); err != nil {
					t.Fatal(err)
				}
			}
			for remaining(t, x) > 0 {
				time.Sleep(time.Millisecond)
			}
			stop()
			if err := x.close(); err != nil {
				t.Error(err)
			}
			if len(handled) != n {
				t.Errorf("%d of %d tasks were handled", len(handled), n)
			}
		})
	}
}

// work starts the store's worker. It calls handle for due tasks until stop is called.
func work(tb testing.TB, x side, handle func(body []byte)) (stop func()) {
	tb.Helper()
	end, err := x.work(handle)
	if err != nil {
		tb.Fatal(err)
	}
	return func() {
		if err := end(); err != nil {
			tb.Error(err)
		}
	}
}

// remaining returns how many tasks the store contains, in any state.
func remaining(tb testing.TB, x side) int64 {
	tb.Helper()
	n, err := x.remaining(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// fill schedules tasks in batches, on several goroutines.
func fill(b *testing.B, x side, ts []task) {
	b.Helper()
	batches := make(chan []task, len(ts)/1000+1)
	for batch := range slices.Chunk(ts, 1000) {
		batches <- batch
	}
	close(batches)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for batch := range batches {
				if err := x.schedule(b.Context(), batch); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
	if b.Failed() {
		b.FailNow()
	}
}

// body returns a task's body of 256 bytes, which begins with the due time.
func body(due time.Time) []byte {
	b := make([]byte, 256)
	binary.LittleEndian.PutUint64(b, uint64(due.UnixNano()))
	for i := 8; i < len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], rand.Uint64())
	}
	return b
}

func dueOf(b []byte) time.Time { return time.Unix(0, int64(binary.LittleEndian.Uint64(b))) }

// tasks returns n tasks with unique keys.
func tasks(n int, due func() time.Time) []task {
	ts := make([]task, n)
	for i := range ts {
		at := due().Truncate(time.Microsecond)
		ts[i] = task{fmt.Sprintf("order-%016x", rand.Uint64()), at, body(at)}
	}
	return ts
}
