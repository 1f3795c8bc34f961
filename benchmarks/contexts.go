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

// These workloads compare contexts of package deadline (impl=tickless) with contexts of
// package context (impl=time), each in its own process.

// withTimeoutFunc is context.WithTimeout or deadline.WithTimeout.
type withTimeoutFunc func(context.Context, time.Duration) (context.Context, context.CancelFunc)

// forEachContextImpl runs work for both implementations with each number of procs.
func forEachContextImpl(b *testing.B, work func(with withTimeoutFunc) map[string]float64) {
	for _, impl := range []string{Time.Name, Tickless.Name} {
		b.Run("impl="+impl, func(b *testing.B) {
			forEachProcCount(b, func() map[string]float64 {
				if impl == Time.Name {
					return work(context.WithTimeout)
				}
				return work(deadline.WithTimeout)
			})
		})
	}
}

// measureCalls calls f n times in all, on one goroutine per proc. It returns ns, the
// elapsed time divided by n, and allocs, the allocations per call.
func measureCalls(n int, f func()) map[string]float64 {
	callInParallel := func(n int) {
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
	callInParallel(n / 10)
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	startTime := time.Now()
	callInParallel(n)
	elapsed := time.Since(startTime)
	runtime.ReadMemStats(&after)
	return map[string]float64{
		"ns":     float64(elapsed.Nanoseconds()) / float64(n),
		"allocs": float64(after.Mallocs-before.Mallocs) / float64(n),
	}
}

// Context measures a context with a timeout: making, using and canceling it. With
// parent=own, it includes the cost of a parent for each context.
func Context(b *testing.B) {
	for _, use := range []struct {
		name string
		call func(context.Context)
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
				forEachContextImpl(b, func(with withTimeoutFunc) map[string]float64 {
					shared, cancelShared := context.WithCancel(context.Background())
					defer cancelShared()
					return measureCalls(choose(1000, 500_000, 1_000_000), func() {
						ctx, cancelParent := shared, func() {}
						if parent == "own" {
							ctx, cancelParent = context.WithCancel(context.Background())
						}
						ctx, cancel := with(ctx, time.Minute)
						use.call(ctx)
						cancel()
						cancelParent()
					})
				})
			})
		}
	}
}

// ContextLive measures the memory of a million contexts that no goroutine waits for. It
// reports B/ctx: heap bytes per context, with its cancel function.
func ContextLive(b *testing.B) {
	forEachContextImpl(b, func(with withTimeoutFunc) map[string]float64 {
		n := choose(1000, 1_000_000, 1_000_000)
		ctxs, cancels := make([]context.Context, n), make([]context.CancelFunc, n)
		heapBefore := liveHeapBytes()
		for i := range ctxs {
			ctxs[i], cancels[i] = with(context.Background(), time.Minute)
		}
		figures := map[string]float64{"B/ctx": float64(liveHeapBytes()-heapBefore) / float64(n)}
		for _, cancel := range cancels {
			cancel()
		}
		return figures
	})
}
