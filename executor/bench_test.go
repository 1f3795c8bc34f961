package executor_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"

	"github.com/tickless/tickless/executor"
)

// goStatement starts a goroutine for each callback, as a program without this package
// does.
type goStatement struct{}

func (goStatement) Submit(f func()) error { go f(); return nil }

func (goStatement) SubmitBatch(fs []func()) (int, error) {
	for _, f := range fs {
		go f()
	}
	return len(fs), nil
}

func (goStatement) Shutdown(context.Context) error { return nil }

type ender interface {
	executor.Batcher
	Shutdown(ctx context.Context) error
}

var benchmarked = []struct {
	name string
	new  func() ender
}{
	{"pool", func() ender { return executor.NewPool() }},
	{"goroutines", func() ender { return executor.NewGoroutines() }},
	{"gostmt", func() ender { return goStatement{} }},
	{"inline", func() ender { return executor.NewInline() }},
}

// countdown signals when a given number of callbacks have run.
type countdown struct {
	left atomic.Int64
	done chan struct{}
}

func (c *countdown) start(n int) {
	c.done = make(chan struct{})
	c.left.Store(int64(n))
}

func (c *countdown) tick() {
	if c.left.Dec() == 0 {
		close(c.done)
	}
}

// With load=burst, BenchmarkSubmit submits 256 callbacks one by one and waits for all.
// With load=isolated it submits one every 20 us and waits for it: ns/submit is the time
// in Submit, and late-ns the median time until the callback runs.
func BenchmarkSubmit(b *testing.B) {
	for _, im := range benchmarked {
		b.Run("impl="+im.name+"/load=burst", func(b *testing.B) {
			e := im.new()
			defer e.Shutdown(context.Background())
			var c countdown
			f := c.tick
			const n = 256
			b.ReportAllocs()
			for b.Loop() {
				c.start(n)
				for range n {
					e.Submit(f)
				}
				<-c.done
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N*n), "ns/callback")
		})
	}
	for _, im := range benchmarked {
		b.Run("impl="+im.name+"/load=isolated", func(b *testing.B) {
			e := im.new()
			defer e.Shutdown(context.Background())
			var began time.Time
			var spent time.Duration
			late := make([]time.Duration, 0, 1<<16)
			done := make(chan struct{}, 1)
			f := func() { late = append(late, time.Since(began)); done <- struct{}{} }
			for b.Loop() {
				for t := time.Now(); time.Since(t) < 20*time.Microsecond; {
				}
				began = time.Now()
				e.Submit(f)
				spent += time.Since(began)
				<-done
			}
			slices.Sort(late)
			b.ReportMetric(float64(spent)/float64(b.N), "ns/submit")
			b.ReportMetric(float64(late[len(late)/2]), "late-ns")
		})
	}
}

// BenchmarkBatch submits short callbacks in batches of 256. n=256 waits after each
// batch, n=1M only after every 3,906 batches.
func BenchmarkBatch(b *testing.B) {
	const size = 256
	for _, n := range []int{size, 1_000_000 / size * size} {
		for _, im := range benchmarked {
			name := "256"
			if n > size {
				name = "1M"
			}
			b.Run(fmt.Sprintf("impl=%s/n=%s", im.name, name), func(b *testing.B) {
				e := im.new()
				defer e.Shutdown(context.Background())
				var wg sync.WaitGroup
				last := wg.Done
				short := func() {}
				fs := slices.Repeat([]func(){short}, size)
				fs[size-1] = last
				b.ReportAllocs()
				for b.Loop() {
					wg.Add(n / size)
					for range n / size {
						e.SubmitBatch(fs)
					}
					wg.Wait()
				}
				b.ReportMetric(float64(b.Elapsed())/float64(b.N*n), "ns/callback")
			})
		}
	}
}

// BenchmarkBlocked measures how long a callback waits behind 1,000 callbacks that block.
// With together=false, it is submitted when the others already run.
func BenchmarkBlocked(b *testing.B) {
	const blocked = 1000
	for _, im := range benchmarked[:3] {
		for _, together := range []bool{true, false} {
			b.Run(fmt.Sprintf("impl=%s/together=%v", im.name, together), func(b *testing.B) {
				var waits []time.Duration
				for b.Loop() {
					e := im.new()
					release := make(chan struct{})
					var running, all sync.WaitGroup
					running.Add(blocked)
					all.Add(blocked)
					fs := slices.Repeat([]func(){func() {
						running.Done()
						<-release
						all.Done()
					}}, blocked)
					ran := make(chan time.Time, 1)
					next := func() { ran <- time.Now() }
					began := time.Now()
					if together {
						e.SubmitBatch(append(fs, next))
					} else {
						e.SubmitBatch(fs)
						running.Wait()
						began = time.Now()
						e.Submit(next)
					}
					waits = append(waits, (<-ran).Sub(began))
					close(release)
					all.Wait()
					e.Shutdown(context.Background())
				}
				slices.Sort(waits)
				b.ReportMetric(float64(waits[len(waits)/2])/1e6, "ms-median")
				b.ReportMetric(float64(waits[len(waits)-1])/1e6, "ms-max")
			})
		}
	}
}
