package serve

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/sqlitestore"
)

// The benchmarks run the service as a process, with a file as its store. The client and the
// receiver are on the same machine. Run them with -benchtime=1x.

// benchNode starts a service for a benchmark.
func benchNode(b *testing.B, flags ...string) *node {
	n := startNode(b, append([]string{"--data", b.TempDir()}, flags...)...)
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = 128
	return n
}

// inParallel calls f from 64 goroutines until it has been called n times.
func inParallel(n int, f func(i int)) time.Duration {
	var next atomic.Int64
	var all sync.WaitGroup
	begin := time.Now()
	for range 64 {
		all.Go(func() {
			for i := int(next.Add(1)); i <= n; i = int(next.Add(1)) {
				f(i)
			}
		})
	}
	all.Wait()
	return time.Since(begin)
}

func BenchmarkServe_Put(b *testing.B) {
	for range b.N {
		n := benchNode(b)
		const tasks = 30_000
		d := inParallel(tasks, func(i int) {
			if status, _, _, err := n.try("PUT", fmt.Sprint("/v1/tasks/", i), object{"url": "http://127.0.0.1:1/", "delay": "1h"}); status != 201 {
				b.Error(status, err)
			}
		})
		b.ReportMetric(tasks/d.Seconds(), "tasks/s")
		n.kill()
	}
}

func BenchmarkServe_Batches(b *testing.B) {
	for range b.N {
		n := benchNode(b)
		const batches = 400
		d := inParallel(batches, func(i int) {
			tasks := make([]object, 250)
			for j := range tasks {
				tasks[j] = object{"key": fmt.Sprint(i, "-", j), "url": "http://127.0.0.1:1/", "delay": "1h"}
			}
			if status, _, _, err := n.try("POST", "/v1/tasks", object{"tasks": tasks}); status != 200 {
				b.Error(status, err)
			}
		})
		b.ReportMetric(batches*250/d.Seconds(), "tasks/s")
		n.kill()
	}
}

// BenchmarkServe_Calls makes 20,000 calls that are due at once.
func BenchmarkServe_Calls(b *testing.B) {
	for range b.N {
		r := newReceiver(b)
		n := benchNode(b, "--concurrency", "256", "--per-host", "256")
		const calls = 20_000
		due := time.Now().Add(4 * time.Second)
		inParallel(calls/250, func(i int) {
			tasks := make([]object, 250)
			for j := range tasks {
				tasks[j] = object{"key": fmt.Sprint(i, "-", j), "url": r.URL, "at": due.UTC().Format(time.RFC3339Nano)}
			}
			n.try("POST", "/v1/tasks", object{"tasks": tasks})
		})
		for r.total() < calls {
			time.Sleep(time.Millisecond)
		}
		b.ReportMetric(calls/time.Since(due).Seconds(), "calls/s")
		n.kill()
	}
}

// BenchmarkServe_Late makes 500 calls a second for 20 s.
func BenchmarkServe_Late(b *testing.B) {
	for range b.N {
		r := newReceiver(b)
		n := benchNode(b)
		const calls = 10_000
		begin := time.Now().Add(3 * time.Second)
		due := func(k int) time.Time { return begin.Add(time.Duration(k) * 2 * time.Millisecond) }
		inParallel(calls/250, func(i int) {
			tasks := make([]object, 250)
			for j := range tasks {
				k := (i-1)*250 + j
				tasks[j] = object{"key": fmt.Sprint(k), "url": r.URL, "at": due(k).UTC().Format(time.RFC3339Nano)}
			}
			n.try("POST", "/v1/tasks", object{"tasks": tasks})
		})
		for r.total() < calls {
			time.Sleep(time.Millisecond)
		}
		var late []time.Duration
		for k := range calls {
			late = append(late, r.calls[fmt.Sprint(k)][0].Sub(due(k)))
		}
		slices.Sort(late)
		b.ReportMetric(float64(late[calls/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(late[calls*99/100].Microseconds())/1000, "p99-ms")
		n.kill()
	}
}

// BenchmarkServe_Memory reports the memory of the service two minutes after 100,000 calls.
func BenchmarkServe_Memory(b *testing.B) {
	for range b.N {
		r := newReceiver(b)
		n := benchNode(b)
		const calls = 100_000
		inParallel(calls/250, func(i int) {
			tasks := make([]object, 250)
			for j := range tasks {
				tasks[j] = object{"key": fmt.Sprint(i, "-", j), "url": r.URL}
			}
			n.try("POST", "/v1/tasks", object{"tasks": tasks})
		})
		for r.total() < calls {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(2 * time.Minute)
		b.ReportMetric(n.memory(), "MB")
		n.kill()
	}
}

// memory returns the resident memory of the service in megabytes. It is for Linux.
func (n *node) memory() float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.cmd.Process.Pid))
	_, rest, ok := strings.Cut(string(status), "VmRSS:")
	var kB float64
	if _, scanErr := fmt.Sscan(rest, &kB); err != nil || !ok || scanErr != nil {
		n.Error("the memory of the service is unknown", err, scanErr)
	}
	return kB * 1024 / 1e6
}

// BenchmarkServe_Pages reads each page with a million pending tasks and 100,000 dead letters.
func BenchmarkServe_Pages(b *testing.B) {
	dir := b.TempDir()
	st, err := sqlitestore.Open(filepath.Join(dir, "tasks.db"))
	if err != nil {
		b.Fatal(err)
	}
	client := durable.New(st, durable.WithLogger(slog.New(slog.DiscardHandler)))
	fill := func(prefix string, n int, at durable.When) {
		for i := 0; i < n; i += 10_000 {
			items := make([]durable.Item, 10_000)
			for j := range items {
				items[j] = durable.Item{When: at, Task: durable.Task{Key: fmt.Sprint(prefix, i+j), Handler: "http", Body: []byte(`{"url":"http://127.0.0.1:1/"}`)}}
			}
			if _, err := client.ScheduleBatch(b.Context(), items); err != nil {
				b.Fatal(err)
			}
		}
	}
	fill("dead-", 100_000, durable.After(0))
	ctx, cancel := context.WithCancel(b.Context())
	w := durable.NewWorker(client, durable.WithConcurrency(1000))
	w.Handle("http", func(context.Context, durable.Delivery) error {
		return durable.NoRetry(fmt.Errorf("POST http://127.0.0.1:1/: 404 Not Found"))
	})
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	for {
		if s, err := client.Stats(ctx); err == nil && s.Dead == 100_000 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	<-ended
	fill("task-", 1_000_000, durable.After(time.Hour))
	if err := st.Close(); err != nil {
		b.Fatal(err)
	}
	n := startNode(b, "--data", dir)
	for range b.N {
		for _, path := range []string{"/", "/tasks", "/tasks?state=dead", "/tasks?state=pending&prefix=task-99", "/tasks/task-7", "/repeating", "/dead", "/queues", "/workers"} {
			begin := time.Now()
			resp, err := http.Get(n.url + path)
			if err != nil {
				b.Fatal(err)
			}
			text, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			fmt.Fprintf(os.Stderr, "%-40s %d %6.1f kB %4d ms\n", path, resp.StatusCode, float64(len(text))/1000, time.Since(begin).Milliseconds())
		}
	}
	b.ReportMetric(n.memory(), "MB")
	n.kill()
}
