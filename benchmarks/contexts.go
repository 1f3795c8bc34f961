package benchmarks

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/tickless/tickless/deadline"
	"github.com/tickless/tickless/timer"
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
// which all have in common or each has of its own, is asked for something, and
// cancelled. It reports ns and allocs, those of a parent of its own included.
func Context(b *testing.B) {
	for _, use := range []struct {
		name string
		ask  func(context.Context)
	}{
		{"nothing", func(context.Context) {}},
		{"Err", func(ctx context.Context) { ctx.Err() }},
		{"Done", func(ctx context.Context) { ctx.Done() }},
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

// ContextFive is five contexts one after the other below one that has a deadline
// too, which is below one that can be cancelled. It reports ns and allocs of all six.
func ContextFive(b *testing.B) {
	for _, asked := range []string{"nothing", "Done"} {
		b.Run("asked="+asked, func(b *testing.B) {
			eachContext(b, func(with withTimeout) map[string]float64 {
				root, cancelRoot := context.WithCancel(context.Background())
				defer cancelRoot()
				return paced(often(), func() {
					parent, cancelParent := with(root, time.Hour)
					for range 5 {
						ctx, cancel := with(parent, time.Minute)
						if asked == "Done" {
							ctx.Done()
						}
						cancel()
					}
					cancelParent()
				})
			})
		})
	}
}

// ContextMethod is one call of a method: of a context that somebody waits for, and,
// as loop, of Err of one that nobody waits for, a thousand times. It reports ns.
func ContextMethod(b *testing.B) {
	for _, method := range []string{"Done", "Err", "loop"} {
		b.Run("method="+method, func(b *testing.B) {
			eachContext(b, func(with withTimeout) map[string]float64 {
				root, cancelRoot := context.WithCancel(context.Background())
				defer cancelRoot()
				calls, wait := 1000, method != "loop"
				figures := paced(often()/calls, func() {
					ctx, cancel := with(root, time.Hour)
					defer cancel()
					if wait {
						ctx.Done()
					}
					for range calls {
						if method == "Done" {
							ctx.Done()
						} else {
							ctx.Err()
						}
					}
				})
				return map[string]float64{"ns": figures["ns"] / float64(calls)}
			})
		})
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

// ContextStorm cancels a context with 100,000 below it that somebody waits for, until
// the last is done. It reports ms.
func ContextStorm(b *testing.B) {
	eachContext(b, func(with withTimeout) map[string]float64 {
		n := choose(1000, 100_000, 100_000)
		ctxs, cancels := make([]context.Context, n), make([]context.CancelFunc, n)
		parent, cancelParent := context.WithCancel(context.Background())
		for i := range ctxs {
			ctxs[i], cancels[i] = with(parent, time.Hour)
			ctxs[i].Done()
		}
		runtime.GC()
		begin := time.Now()
		cancelParent()
		for _, ctx := range ctxs {
			<-ctx.Done()
		}
		took := time.Since(begin)
		for _, cancel := range cancels {
			cancel()
		}
		return map[string]float64{"ms": milliseconds(took)}
	})
}

// DeadlineSet sets a deadline later while nobody waits for it: deadline.Deadline, and
// the Reset of a time.Timer. It reports ns.
func DeadlineSet(b *testing.B) {
	onOne(b, Time.Name, func() func() {
		t := time.NewTimer(time.Hour)
		return func() { t.Reset(time.Hour) }
	})
	onOne(b, Tickless.Name, func() func() {
		var d deadline.Deadline
		at := time.Now().Add(time.Hour)
		return func() {
			at = at.Add(time.Nanosecond)
			d.Set(at)
		}
	})
}

// onOne measures what setUp returns, on one goroutine and one proc.
func onOne(b *testing.B, impl string, setUp func() func()) {
	b.Run("impl="+impl+"/p=1", func(b *testing.B) {
		reportProcess(b, func() map[string]float64 {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			return paced(10*often(), setUp())
		})
	})
}

// TimerField starts and stops, or resets later, a timer of a minute: a time.Timer, one
// of Start's by its Handle, and as impl=field a timer.Timer that is kept. It
// reports ns and allocs.
func TimerField(b *testing.B) {
	const d = time.Minute
	b.Run("op=startstop", func(b *testing.B) {
		onOne(b, Time.Name, func() func() {
			t := time.AfterFunc(d, nop)
			return func() { t.Reset(d); t.Stop() }
		})
		onOne(b, Tickless.Name, func() func() {
			s := timer.New()
			return func() {
				h, _ := s.Start(d, nop)
				h.Stop()
			}
		})
		onOne(b, "field", func() func() {
			t := timer.New().AfterFunc(d, nop)
			return func() { t.Reset(d); t.Stop() }
		})
	})
	b.Run("op=reset", func(b *testing.B) {
		onOne(b, Time.Name, func() func() {
			t := time.AfterFunc(d, nop)
			return func() { t.Reset(d) }
		})
		onOne(b, Tickless.Name, func() func() {
			h, _ := timer.New().Start(d, nop)
			return func() { h.Reset(d) }
		})
		onOne(b, "field", func() func() {
			t := timer.New().AfterFunc(d, nop)
			return func() { t.Reset(d) }
		})
	})
}
