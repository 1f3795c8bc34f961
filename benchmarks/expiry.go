package benchmarks

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"go.uber.org/atomic"
)

// Expiry measures a million timers whose deadlines are spread evenly over one second. They
// are started in random order, by one goroutine, 6.3 s ahead. So most of them are in one
// slot of the third level of one wheel, which moves them down while others are due. It
// reports
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
				e := newExpiryRun(n, m)
				for b.Loop() {
					e.runOnce(b, m)
				}
				b.ReportMetric(0, "ns/op") // 0 hides it: it includes the waiting
				b.ReportMetric(e.lastLatenessSum/float64(b.N), "last-ms")
				b.ReportMetric(quantile(e.lateness, 0.5), "p50-ms")
				b.ReportMetric(quantile(e.lateness, 0.999), "p99.9-ms")
				b.ReportMetric(float64(e.earlyCount), "early")
				b.ReportMetric(float64(e.lostCount), "lost")
				if e.hasCPUTime {
					b.ReportMetric(e.cpuUsed.Seconds()/float64(b.N), "cpu-s")
				}
			})
		}
	})
}

// expiryGracePeriod plus the time span of the deadlines is how long a run waits for the
// next callback. If none runs, the missing callbacks count as lost.
const expiryGracePeriod = 5 * time.Second

// expiryRun holds the deadlines and results of the workload Expiry. Each slice except
// lateness has one element per slot. Times are relative to startTime.
type expiryRun struct {
	firstDeadline time.Duration // the first deadline
	deadlineSpan  time.Duration // from the first to the last deadline

	startTime time.Time // of a run
	deadlines []time.Duration
	ranAt     []time.Duration // zero until the callback has run
	callbacks []func()
	ranCount  atomic.Int32

	lastLatenessSum       float64   // the sum of last-ms
	lateness              []float64 // in milliseconds
	earlyCount, lostCount int
	cpuUsed               time.Duration
	hasCPUTime            bool // the system reports CPU times
}

func newExpiryRun(n int, m Maker) *expiryRun {
	e := &expiryRun{
		firstDeadline: m.firstDeadline(choose(100*time.Millisecond, 6300*time.Millisecond, 6300*time.Millisecond)),
		deadlineSpan:  choose(10*time.Millisecond, time.Second, time.Second),
		deadlines:     make([]time.Duration, n),
		ranAt:         make([]time.Duration, n),
		callbacks:     make([]func(), n),
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for slot, rank := range rng.Perm(n) {
		e.deadlines[slot] = e.firstDeadline + e.deadlineSpan*time.Duration(rank)/time.Duration(n)
		e.callbacks[slot] = func() {
			e.ranAt[slot] = time.Since(e.startTime)
			e.ranCount.Inc()
		}
	}
	return e
}

func (e *expiryRun) runOnce(b *testing.B, m Maker) {
	n := len(e.deadlines)
	clear(e.ranAt)
	e.ranCount.Store(0)
	runtime.GC()
	impl := m.New(n)
	defer impl.Close()

	e.startTime = time.Now()
	for slot := range n {
		// Start reads the clock after this delay is computed. So the timer is due at
		// e.deadlines[slot] or later, not earlier.
		impl.Start(slot, e.deadlines[slot]-time.Since(e.startTime), e.callbacks[slot])
	}
	if time.Since(e.startTime) > e.firstDeadline {
		b.Logf("%s was still starting timers when the first fell due", m.Name)
	}
	time.Sleep(e.firstDeadline - time.Since(e.startTime))

	cpuBefore, hasCPU := cpuTime()
	e.waitForCallbacks()
	cpuAfter, _ := cpuTime()
	e.cpuUsed += cpuAfter - cpuBefore
	e.hasCPUTime = hasCPU

	var lastRanAt time.Duration
	for slot, ranAt := range e.ranAt {
		if ranAt == 0 {
			e.lostCount++
			continue
		}
		callbackLateness := ranAt - e.deadlines[slot]
		if callbackLateness < 0 {
			e.earlyCount++
		}
		e.lateness = append(e.lateness, milliseconds(callbackLateness))
		lastRanAt = max(lastRanAt, ranAt)
	}
	e.lastLatenessSum += milliseconds(max(0, lastRanAt-e.firstDeadline-e.deadlineSpan*time.Duration(n-1)/time.Duration(n)))
}

// waitForCallbacks returns when every callback has run, or none has run for
// e.deadlineSpan plus expiryGracePeriod.
func (e *expiryRun) waitForCallbacks() {
	previousCount := int32(-1)
	var giveUp time.Time
	for {
		currentCount := e.ranCount.Load()
		if int(currentCount) >= len(e.deadlines) {
			return
		}
		if currentCount != previousCount {
			previousCount, giveUp = currentCount, time.Now().Add(e.deadlineSpan+expiryGracePeriod)
		}
		if time.Now().After(giveUp) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}
