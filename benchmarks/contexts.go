package benchmarks

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/tickless/tickless/deadline"
)

// The workloads of this file compare contexts of package deadline with package
// context's (impl=time), each in a process of its own.

// withTimeout is context.WithTimeout, or package deadline's.
type withTimeout func(context.Context, time.Duration) (context.Context, context.CancelFunc)

// eachContext runs work for both implementations, on each number of procs.
func eachContext(b *testing.B, work func(with withTimeout) map[string]float64) {
	for _, impl := range []string{Time.Name, Tickless.Name} {
		b.Run("impl="+impl, func(b *testing.B) {
			onProcs(b, func() map[string]float64 {
				if impl == Time.Name {
					return work(context.WithTimeout)
				}
				return work(deadline.WithTimeout)
			})
		})
	}
}

// paced calls f n times, on as many goroutines as there are procs, and reports what a
// call takes: ns, the time that passes between the ends of two, and allocs.
func paced(n int, f func()) map[string]float64 {
	run := func(n int) {
		var wg sync.WaitGroup
		for range runtime.GOMAXPROCS(0) {
			wg.Go(func() {
				for range n / runtime.GOMAXPROCS(0) {
					f()
				}
			})
		}
		wg.Wait()
	}
	run(n / 10)
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := time.Now()
	run(n)
	took := time.Since(begin)
	runtime.ReadMemStats(&after)
	return map[string]float64{
		"ns":     float64(took.Nanoseconds()) / float64(n),
		"allocs": float64(after.Mallocs-before.Mallocs) / float64(n),
	}
}

// often is how often what takes less than a microsecond is done.
func often() int { return choose(1000, 500_000, 1_000_000) }

// Context is a context's life: it is made below a context that can be cancelled,
// which all have in common or each has of its own, is asked for something or gets a
// child, and is cancelled. It reports ns and allocs, those of a parent of its own included.
func Context(b *testing.B) {
	for _, use := range []struct {
		name string
		ask  func(context.Context)
	}{
		{"nothing", func(context.Context) {}},
		{"Err", func(ctx context.Context) { ctx.Err() }},
		{"Done", func(ctx context.Context) { ctx.Done() }},
		{"child", func(ctx context.Context) {
			_, cancel := context.WithCancel(ctx)
			cancel()
		}},
	} {
		for _, parent := range []string{"shared", "own"} {
			b.Run(fmt.Sprintf("asked=%s/parent=%s", use.name, parent), func(b *testing.B) {
				eachContext(b, func(with withTimeout) map[string]float64 {
					shared, cancelShared := context.WithCancel(context.Background())
					defer cancelShared()
					return paced(often(), func() {
						ctx, cancelParent := shared, func() {}
						if parent == "own" {
							ctx, cancelParent = context.WithCancel(context.Background())
						}
						ctx, cancel := with(ctx, time.Minute)
						use.ask(ctx)
						cancel()
						cancelParent()
					})
				})
			})
		}
	}
}

// ContextLive has a million contexts live whose deadlines are a minute away, and
// which nobody waits for. It reports B/ctx, the live heap with their cancels.
func ContextLive(b *testing.B) {
	eachContext(b, func(with withTimeout) map[string]float64 {
		n := choose(1000, 1_000_000, 1_000_000)
		ctxs, cancels := make([]context.Context, n), make([]context.CancelFunc, n)
		before := liveHeap()
		for i := range ctxs {
			ctxs[i], cancels[i] = with(context.Background(), time.Minute)
		}
		figures := map[string]float64{"B/ctx": float64(liveHeap()-before) / float64(n)}
		for _, cancel := range cancels {
			cancel()
		}
		return figures
	})
}
