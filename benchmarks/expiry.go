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

// Expiry measures a million timers whose deadlines are spread evenly over one second. They
// are started in random order. It reports
//
//   - last-ms: how long after the last deadline the last callback ran
//   - p50-ms, p99.9-ms: how late callbacks ran
//   - early, lost: callbacks that ran too early or never
//   - cpu-s: CPU time from the first deadline on
func Expiry(b *testing.B, m Maker) {
	n := choose(10_000, 1_000_000, 1_000_000)
	b.Run("n="+Size(n), func(b *testing.B) {
		for _, p := range choose([]int{2}, []int{2}, procCounts) {
			b.Run(fmt.Sprintf("p=%d", p), func(b *testing.B) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(p))
				e := newExpiry(n, m)
				for b.Loop() {
					e.run(b, m)
				}
				b.ReportMetric(0, "ns/op") // 0 hides it: it includes the waiting
				b.ReportMetric(e.lastLate/float64(b.N), "last-ms")
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

// A run ends if no callback runs for the time span plus expiryGrace. The callbacks that
// have not run then count as lost.
const expiryGrace = 5 * time.Second

// expiryRun holds the deadlines and results of the workload Expiry. Each slice except
// lateness has one element per slot. Times are relative to begin.
type expiryRun struct {
	firstDue time.Duration // the first deadline
	span     time.Duration // from the first to the last deadline

	begin     time.Time // of a run
	due       []time.Duration
	ranAt     []time.Duration // zero until the callback has run
	callbacks []func()
	ranCount  atomic.Int32

	lastLate    float64   // the sum of last-ms
	lateness    []float64 // in milliseconds
	early, lost int
	cpu         time.Duration
	hasCPU      bool // the system reports CPU times
}

func newExpiry(n int, m Maker) *expiryRun {
	e := &expiryRun{
		firstDue:  m.firstDue(choose(100*time.Millisecond, 1300*time.Millisecond, 2*time.Second)),
		span:      choose(10*time.Millisecond, time.Second, time.Second),
		due:       make([]time.Duration, n),
		ranAt:     make([]time.Duration, n),
		callbacks: make([]func(), n),
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for slot, rank := range rng.Perm(n) {
		e.due[slot] = e.firstDue + e.span*time.Duration(rank)/time.Duration(n)
		e.callbacks[slot] = func() {
			e.ranAt[slot] = time.Since(e.begin)
			e.ranCount.Inc()
		}
	}
	return e
}

func (e *expiryRun) run(b *testing.B, m Maker) {
	n := len(e.due)
	clear(e.ranAt)
	e.ranCount.Store(0)
	runtime.GC()
	impl := m.New(n)
	defer impl.Close()

	e.begin = time.Now()
	var wg sync.WaitGroup
	nprocs := runtime.GOMAXPROCS(0)
	for g := range nprocs {
		wg.Go(func() {
			for slot := g; slot < n; slot += nprocs {
				// Start reads the clock after this delay is computed. So the timer is due
				// at e.due[slot] or later, not earlier.
				impl.Start(slot, e.due[slot]-time.Since(e.begin), e.callbacks[slot])
			}
		})
	}
	wg.Wait()
	if time.Since(e.begin) > e.firstDue {
		b.Logf("%s was still starting timers when the first fell due", m.Name)
	}
	time.Sleep(e.firstDue - time.Since(e.begin))

	before, hasCPU := cpuTime()
	e.wait()
	after, _ := cpuTime()
	e.cpu += after - before
	e.hasCPU = hasCPU

	var lastRan time.Duration
	for slot, ranAt := range e.ranAt {
		if ranAt == 0 {
			e.lost++
			continue
		}
		late := ranAt - e.due[slot]
		if late < 0 {
			e.early++
		}
		e.lateness = append(e.lateness, milliseconds(late))
		lastRan = max(lastRan, ranAt)
	}
	e.lastLate += milliseconds(max(0, lastRan-e.firstDue-e.span*time.Duration(n-1)/time.Duration(n)))
}

// wait returns when every callback has run, or none has run for e.span plus expiryGrace.
func (e *expiryRun) wait() {
	lastCount := int32(-1)
	var giveUp time.Time
	for {
		count := e.ranCount.Load()
		if int(count) >= len(e.due) {
			return
		}
		if count != lastCount {
			lastCount, giveUp = count, time.Now().Add(e.span+expiryGrace)
		}
		if time.Now().After(giveUp) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}
