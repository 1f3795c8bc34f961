package benchmarks

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/tickless/tickless/durable/redisstore"
)

// An impl is one of the compared libraries.
type impl interface {
	// schedule schedules tasks from several goroutines. With batch, a call of the library
	// schedules many tasks.
	schedule(b *testing.B, tasks []task, goroutines int, batch bool)
	// work starts a worker, which calls handle for each task until stop is called.
	work(b *testing.B, handle func(body []byte)) (stop func())
	// remaining returns how many tasks are in Redis, in any state.
	remaining(b *testing.B) int
	// batches reports whether the library can schedule many tasks in a call.
	batches() bool
	close()
}

type task struct {
	key  string
	due  time.Time
	body []byte
}

var impls = []struct {
	name string
	make func(*server) impl
}{
	{"tickless", newTickless},
	{"asynq-tuned", newAsynqTuned},
	{"asynq", newAsynq},
}

// exact is tickless without slack: a worker's commands do not wait to be combined.
var exact = struct {
	name string
	make func(*server) impl
}{"tickless-exact", func(s *server) impl {
	return newTicklessOn(s.client(), redisstore.WithClaimDelay(0))
}}

// scale returns n in mode long, a hundredth of n under -short, and else a tenth.
func scale(n int) int {
	switch {
	case testing.Short():
		return n / 100
	case os.Getenv("TICKLESS_BENCH") == "long":
		return n
	}
	return n / 10
}

func span(d time.Duration) time.Duration { return time.Duration(scale(int(d))) }

func TestMain(m *testing.M) {
	slog.SetLogLoggerLevel(slog.LevelError + 1)
	os.Exit(m.Run())
}

// body returns a task's body of 205 bytes, which begins with the due time.
func body(due time.Time) []byte {
	b := make([]byte, 205)
	binary.LittleEndian.PutUint64(b, uint64(due.UnixNano()))
	for i := 8; i < len(b); i++ {
		b[i] = byte(i)
	}
	return b
}

func dueOf(b []byte) time.Time { return time.Unix(0, int64(binary.LittleEndian.Uint64(b))) }

// tasks returns n tasks. Task i is due at due(i).
func tasks(n int, due func(int) time.Time) []task {
	ts := make([]task, n)
	for i := range ts {
		at := due(i)
		ts[i] = task{fmt.Sprintf("order-%08d", i), at, body(at)}
	}
	return ts
}

func each(b *testing.B, f func(b *testing.B, s *server, x impl)) {
	compared := impls
	if strings.HasPrefix(b.Name(), "BenchmarkSteady/") {
		compared = append(slices.Clone(compared), exact)
	}
	for _, i := range compared {
		b.Run("impl="+i.name, func(b *testing.B) {
			for b.Loop() {
				s := startServer(b)
				x := i.make(s)
				runtime.GC()
				f(b, s, x)
				x.close()
				s.kill()
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkSchedule schedules tasks for tomorrow.
func BenchmarkSchedule(b *testing.B) {
	tomorrow := func(int) time.Time { return time.Now().Add(24 * time.Hour) }
	for _, w := range []struct {
		by           string
		conns, tasks int
	}{{"batch", 4, 1_000_000}, {"one", 1, 100_000}, {"one", 32, 300_000}} {
		b.Run(fmt.Sprintf("by=%s/conns=%d", w.by, w.conns), func(b *testing.B) {
			each(b, func(b *testing.B, s *server, x impl) {
				if w.by == "batch" && !x.batches() {
					b.Skip("the library cannot schedule batches")
				}
				n := scale(w.tasks)
				ts := tasks(n, tomorrow)
				cpu, begin := serverCPU(b, s), time.Now()
				x.schedule(b, ts, w.conns, w.by == "batch")
				b.ReportMetric(float64(n)/time.Since(begin).Seconds(), "tasks/s")
				b.ReportMetric(1e6*(serverCPU(b, s)-cpu)/float64(n), "server-us/task")
			})
		})
	}
}

// BenchmarkBurst schedules tasks for the same time. It measures how long after that time
// the last task has been handled and acknowledged.
func BenchmarkBurst(b *testing.B) {
	n := scale(100_000)
	each(b, func(b *testing.B, s *server, x impl) {
		lead := 3*time.Second + time.Duration(n)*200*time.Microsecond
		due := time.Now().Add(lead).Truncate(time.Second)
		x.schedule(b, tasks(n, func(int) time.Time { return due }), 8, x.batches())
		if time.Until(due) < time.Second { // the worker needs time to start
			b.Fatalf("scheduling took too long: %v is left before the tasks are due, want a second or more", time.Until(due))
		}
		var handled atomic.Int64
		all := make(chan struct{})
		cpu := serverCPU(b, s)
		stop := x.work(b, func([]byte) {
			if handled.Add(1) == int64(n) {
				close(all)
			}
		})
		<-all
		for x.remaining(b) > 0 {
			time.Sleep(time.Millisecond)
		}
		b.ReportMetric(time.Since(due).Seconds(), "s")
		b.ReportMetric(1e6*(serverCPU(b, s)-cpu)/float64(n), "server-us/task")
		stop()
	})
}

// BenchmarkSteady schedules tasks for random times, 1,000 or 10,000 a second. It measures
// the CPU time of server and worker, and how late handlers start.
func BenchmarkSteady(b *testing.B) {
	for _, rate := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("rate=%dk", rate/1000), func(b *testing.B) {
			each(b, func(b *testing.B, s *server, x impl) { steady(b, s, x, rate) })
		})
	}
}

func steady(b *testing.B, s *server, x impl, rate int) {
	duration := span(10 * time.Second)
	n := int(float64(rate) * duration.Seconds())
	begin := time.Now().Add(2*time.Second + time.Duration(n)*20*time.Microsecond)
	x.schedule(b, tasks(n, func(int) time.Time { return begin.Add(rand.N(duration)).Truncate(time.Microsecond) }), 8, x.batches())
	h := hdrhistogram.New(1, int64(time.Minute/time.Microsecond), 3)
	var mu sync.Mutex
	early, handled, all := 0, 0, make(chan struct{})
	stop := x.work(b, func(body []byte) {
		late := time.Since(dueOf(body))
		mu.Lock()
		defer mu.Unlock()
		if late < 0 {
			early++
		}
		_ = h.RecordValue(max(1, late.Microseconds()))
		if handled++; handled == n {
			close(all)
		}
	})
	time.Sleep(time.Until(begin))
	own := ownCPU()
	calls, _, cpu := spent(b, s)
	<-all
	ownSpent := ownCPU() - own
	calls2, _, cpu2 := spent(b, s)
	stop()
	b.ReportMetric(1e6*(cpu2-cpu)/float64(n), "server-us/task")
	b.ReportMetric(1e6*ownSpent.Seconds()/float64(n), "worker-us/task")
	b.ReportMetric((calls2-calls)/float64(n), "commands/task")
	ms := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1000 }
	b.ReportMetric(ms(50), "p50-ms")
	b.ReportMetric(ms(99), "p99-ms")
	b.ReportMetric(float64(early)/float64(n)*100, "early-%")
}

// BenchmarkMemory measures the memory of a pending task in Redis.
func BenchmarkMemory(b *testing.B) {
	n := scale(1_000_000)
	measure := func(b *testing.B, s *server, x impl) {
		before := memory(b, s)
		x.schedule(b, tasks(n, func(int) time.Time { return time.Now().Add(24 * time.Hour) }), 8, x.batches())
		b.ReportMetric(float64(memory(b, s)-before)/float64(n), "bytes/task")
	}
	each(b, measure)
	b.Run("impl=asynq-uuid", func(b *testing.B) {
		for b.Loop() {
			s := startServer(b)
			x := newAsynq(s).(*asynqImpl)
			x.uuid = true
			measure(b, s, x)
			x.close()
		}
		b.ReportMetric(0, "ns/op")
	})
}

func memory(b *testing.B, s *server) int64 {
	used, _ := strconv.ParseInt(info(b, s, "memory", "used_memory"), 10, 64)
	return used
}

// info returns one field of the server's INFO command.
func info(b *testing.B, s *server, section, field string) string {
	b.Helper()
	c := s.client()
	defer c.Close()
	for line := range strings.Lines(c.Info(context.Background(), section).Val()) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && k == field {
			return v
		}
	}
	b.Fatalf("INFO has no %s", field)
	return ""
}

// BenchmarkIdle measures what a worker costs while its only task is not due.
func BenchmarkIdle(b *testing.B) {
	each(b, func(b *testing.B, s *server, x impl) {
		x.schedule(b, tasks(1, func(int) time.Time { return time.Now().Add(24 * time.Hour) }), 1, false)
		stop := x.work(b, func([]byte) {})
		time.Sleep(span(20*time.Second) / 4)
		begin, own := time.Now(), ownCPU()
		calls, inner, cpu := spent(b, s)
		time.Sleep(span(20 * time.Second))
		seconds := time.Since(begin).Seconds()
		ownSpent := ownCPU() - own
		calls2, inner2, cpu2 := spent(b, s)
		b.ReportMetric((calls2-calls)/seconds, "commands/s")
		b.ReportMetric((inner2-inner)/seconds, "with-those-in-scripts/s")
		b.ReportMetric((cpu2-cpu)/seconds*100, "server-cpu-%")
		b.ReportMetric(ownSpent.Seconds()/seconds*100, "worker-cpu-%")
		stop()
	})
}

// spent returns the totals of the server:
//
//   - calls: commands from clients
//   - all: commands from clients and from scripts
//   - cpu: CPU time in seconds
func spent(b *testing.B, s *server) (calls, all, cpu float64) {
	b.Helper()
	number := func(section, field string) float64 {
		n, _ := strconv.ParseFloat(info(b, s, section, field), 64)
		return n
	}
	c := s.client()
	defer c.Close()
	for line := range strings.Lines(c.Info(context.Background(), "commandstats").Val()) {
		name, rest, _ := strings.Cut(line, ":calls=")
		switch name {
		// Only clients send these commands: no script of either library runs one.
		case "cmdstat_evalsha", "cmdstat_eval", "cmdstat_bzpopmin", "cmdstat_ping", "cmdstat_smembers",
			"cmdstat_setex", "cmdstat_expire", "cmdstat_subscribe", "cmdstat_publish":
			n, _, _ := strings.Cut(rest, ",")
			f, _ := strconv.ParseFloat(n, 64)
			calls += f
		}
	}
	return calls, number("stats", "total_commands_processed"), number("cpu", "used_cpu_user") + number("cpu", "used_cpu_sys")
}

// serverCPU returns a server's CPU time in seconds.
func serverCPU(b *testing.B, s *server) float64 {
	_, _, cpu := spent(b, s)
	return cpu
}
