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

// The workloads of this file compare contexts of package deadline with those of package
// context (impl=time), each in its own process.

// withTimeout is the function WithTimeout of package context or package deadline.
type withTimeout func(context.Context, time.Duration) (context.Context, context.CancelFunc)

// eachContext runs work for both implementations with each number of procs.
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

// paced calls f n times, on as many goroutines as there are procs. It reports ns, the
// elapsed time divided by n, and allocs, the allocations of a call.
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

// often is the number of repetitions for an operation that takes less than a
// microsecond.
func often() int { return choose(1000, 500_000, 1_000_000) }

// Context makes a context, uses it or makes a child of it, and cancels it. The parent
// can be cancelled; it is shared or is made for each context. Context reports ns and
// allocs, including those of such a parent.
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

// ContextLive keeps a million contexts alive whose deadlines are a minute away and for
// which no goroutine waits. It reports B/ctx, the live heap including the cancel
// functions.
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
