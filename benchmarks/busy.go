package benchmarks

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"
)

// In these workloads timers run while other goroutines compute, as in a server. Each
// implementation runs in its own process.

// forEachProcCount runs work in a new process for each number of procs (GOMAXPROCS), and
// reports the figures that work returns.
func forEachProcCount(b *testing.B, work func() map[string]float64) {
	for _, p := range choose([]int{2}, procCounts, procCounts) {
		b.Run(fmt.Sprintf("p=%d", p), func(b *testing.B) {
			reportChildFigures(b, func() map[string]float64 {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(p))
				return work()
			})
		})
	}
}

// forEachBusyCount runs work once for each number of computing goroutines in counts.
func forEachBusyCount(b *testing.B, counts []int, work func(busy int) map[string]float64) {
	for _, busy := range counts {
		b.Run(fmt.Sprintf("busy=%d", busy), func(b *testing.B) {
			forEachProcCount(b, func() map[string]float64 { return work(busy) })
		})
	}
}

// BusyBurst measures how late 100,000 timers with the same deadline fire while other
// goroutines compute. It reports
//
//   - last-ms: how late the last callback ran
//   - p50-ms: the median lateness
//   - lost: callbacks that never ran
func BusyBurst(b *testing.B, m Maker) {
	n := choose(1000, 100_000, 100_000)
	b.Run("n="+Size(n), func(b *testing.B) {
		forEachBusyCount(b, choose([]int{2}, []int{0, 2, 4, 16}, []int{0, 2, 4, 16}), func(busy int) map[string]float64 {
			deadline := m.firstDeadline(choose(100*time.Millisecond, time.Second, time.Second))
			l := &scatteredTimers{deadlines: make([]time.Duration, n), ranAt: make([]atomic.Int64, n), done: make(chan struct{}), gracePeriod: busyGracePeriod}
			l.todo.Store(int32(n))
			for i := range l.deadlines {
				l.deadlines[i] = deadline
			}
			var stopBusy func()
			l.onAllStarted = func() { stopBusy = keepBusy(busy) }
			l.startAndWait(m)
			stopBusy()
			late, lost := l.measureLateness()
			return map[string]float64{"last-ms": quantile(late, 1), "p50-ms": quantile(late, 0.5), "lost": float64(lost)}
		})
	})
}

// busyGracePeriod is how long after the last deadline a missing callback counts as lost.
const busyGracePeriod = 60 * time.Second

// BusyRate measures timers with random deadlines, a thousand a second, while other
// goroutines compute. It reports scatteredTimers.figures.
func BusyRate(b *testing.B, m Maker) {
	forEachBusyCount(b, choose([]int{2}, []int{2, 4, 16}, []int{2, 4, 16}), func(busy int) map[string]float64 {
		stopBusy := keepBusy(busy)
		defer stopBusy()
		deadlineSpan := choose(50*time.Millisecond, 2*time.Second, 5*time.Second)
		l := newScatteredTimers(max(10, int(deadlineSpan/time.Millisecond)), deadlineSpan)
		l.gracePeriod = busyGracePeriod
		l.startAndWait(m)
		return l.figures()
	})
}

// BusyQueue measures how late a timer fires behind slow callbacks. It starts 3,000 timers
// that are due together and compute for 2 ms each. Then it starts timers with short
// callbacks, the probes. It reports
//
//   - p50-ms, worst-ms: how late the probes ran
//   - lost: probes that never ran
func BusyQueue(b *testing.B, m Maker) {
	forEachProcCount(b, func() map[string]float64 {
		n, probes := choose(30, 3000, 3000), 20
		impl := m.New(n + probes)
		defer impl.Close()
		return measureProbes(n, probes, impl.Start)
	})
}

// measureProbes starts n computing callbacks and then, every 10 ms, a probe. It returns the
// figures of BusyQueue.
func measureProbes(n, probes int, start func(slot int, d time.Duration, f func())) map[string]float64 {
	const callbackTime, deadline, probeDelay, interval = 2 * time.Millisecond, 50 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond
	l := &scatteredTimers{deadlines: make([]time.Duration, probes), ranAt: make([]atomic.Int64, probes), done: make(chan struct{}), gracePeriod: busyGracePeriod}
	l.todo.Store(int32(n + probes))
	startTime := time.Now()
	for slot := range n {
		start(slot, deadline-time.Since(startTime), func() { compute(callbackTime); l.countDone() })
	}
	time.Sleep(deadline + interval - time.Since(startTime))
	for i := range probes {
		l.deadlines[i] = time.Since(startTime) + probeDelay
		start(n+i, probeDelay, func() {
			l.ranAt[i].Store(int64(time.Since(startTime)))
			l.countDone()
		})
		time.Sleep(interval)
	}
	select {
	case <-l.done:
	case <-time.After(busyGracePeriod):
	}
	late, lost := l.measureLateness()
	return map[string]float64{"p50-ms": quantile(late, 0.5), "worst-ms": quantile(late, 1), "lost": float64(lost)}
}

// compute does work that takes the time d if it has a proc for itself.
func compute(d time.Duration) {
	rng := xorshift(1)
	for range int(d.Microseconds()) * numbersPerMicrosecond() {
		rng.intN(2)
	}
}

// numbersPerMicrosecond returns how many random numbers xorshift makes in a microsecond
// on this machine.
var numbersPerMicrosecond = sync.OnceValue(func() int {
	numberCount := 0
	rng := xorshift(1)
	for startTime := time.Now(); time.Since(startTime) < 20*time.Millisecond; {
		for range 1000 {
			rng.intN(2)
		}
		numberCount += 1000
	}
	return max(1, numberCount/20_000)
})
