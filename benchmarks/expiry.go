package benchmarks

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"
)

// Expiry lets a million timers, all started before, fall due evenly within one second
// in random order. It reports
//
//   - last-ms: how long after the last deadline the last callback ran;
//   - p50-ms, p99.9-ms: how late callbacks ran, by the caller's clock;
//   - early, lost: timers, which should be none;
//   - cpu-s: user and system time from the first deadline on.
func Expiry(b *testing.B, m Maker) {
	n := choose(10_000, 1_000_000, 1_000_000)
	b.Run("n="+Size(n), func(b *testing.B) {
		for _, p := range choose([]int{2}, []int{2}, procs) {
			b.Run(fmt.Sprintf("p=%d", p), func(b *testing.B) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(p))
				e := newExpiry(n, m)
				for b.Loop() {
					e.run(b, m)
				}
				b.ReportMetric(0, "ns/op") // says nothing: hidden
				b.ReportMetric(e.last/float64(b.N), "last-ms")
				b.ReportMetric(quantile(e.lateness, 0.5), "p50-ms")
				b.ReportMetric(quantile(e.lateness, 0.999), "p99.9-ms")
				b.ReportMetric(float64(e.early), "early")
				b.ReportMetric(float64(e.lost), "lost")
				if e.hasCPU {
					b.ReportMetric(e.cpu.Seconds()/float64(b.N), "cpu-s")
				}
			})
		}
	})
}

// expiryGrace is the time without a callback after which the missing timers count as
// lost.
const expiryGrace = 5 * time.Second

// expiry has the records of the workload. Times are relative to base.
type expiry struct {
	lead, span time.Duration // to start the timers in; within which they fall due

	base      time.Time
	due       []time.Duration
	ran       []time.Duration // zero until the callback has run
	callbacks []func()
	count     atomic.Int32

	last        float64
	lateness    []float64
	early, lost int
	cpu         time.Duration
	hasCPU      bool
}

func newExpiry(n int, m Maker) *expiry {
	e := &expiry{
		lead:      m.lead(choose(100*time.Millisecond, 1300*time.Millisecond, 2*time.Second)),
		span:      choose(10*time.Millisecond, time.Second, time.Second),
		due:       make([]time.Duration, n),
		ran:       make([]time.Duration, n),
		callbacks: make([]func(), n),
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for slot, rank := range rng.Perm(n) {
		e.due[slot] = e.lead + e.span*time.Duration(rank)/time.Duration(n)
		e.callbacks[slot] = func() {
			e.ran[slot] = time.Since(e.base)
			e.count.Inc()
		}
	}
	return e
}

func (e *expiry) run(b *testing.B, m Maker) {
	n := len(e.due)
	clear(e.ran)
	e.count.Store(0)
	runtime.GC()
	impl := m.New(n)
	defer impl.Close()

	e.base = time.Now()
	var wg sync.WaitGroup
	nprocs := runtime.GOMAXPROCS(0)
	for g := range nprocs {
		wg.Go(func() {
			for slot := g; slot < n; slot += nprocs {
				// The implementation reads its clock after this line, so that due is
				// never after the true deadline.
				impl.Start(slot, e.due[slot]-time.Since(e.base), e.callbacks[slot])
			}
		})
	}
	wg.Wait()
	if time.Since(e.base) > e.lead {
		b.Logf("%s was still starting timers when the first fell due", m.Name)
	}
	time.Sleep(e.lead - time.Since(e.base))

	before, hasCPU := cpuTime()
	e.wait()
	after, _ := cpuTime()
	e.cpu += after - before
	e.hasCPU = hasCPU

	var lastRan time.Duration
	for slot, ran := range e.ran {
		if ran == 0 {
			e.lost++
			continue
		}
		late := ran - e.due[slot]
		if late < 0 {
			e.early++
		}
		e.lateness = append(e.lateness, milliseconds(late))
		lastRan = max(lastRan, ran)
	}
	e.last += milliseconds(max(0, lastRan-e.lead-e.span*time.Duration(n-1)/time.Duration(n)))
}

// wait returns when every callback has run, or when there is no progress any more.
func (e *expiry) wait() {
	seen := int32(-1)
	var quiet time.Time
	for {
		count := e.count.Load()
		if int(count) >= len(e.due) {
			return
		}
		if count != seen {
			seen, quiet = count, time.Now().Add(e.span+expiryGrace)
		}
		if time.Now().After(quiet) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}
