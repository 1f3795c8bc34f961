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

// eachProcs runs work in a new process for each number of procs (GOMAXPROCS), and
// reports its figures.
func eachProcs(b *testing.B, work func() map[string]float64) {
	for _, p := range choose([]int{2}, procCounts, procCounts) {
		b.Run(fmt.Sprintf("p=%d", p), func(b *testing.B) {
			reportChild(b, func() map[string]float64 {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(p))
				return work()
			})
		})
	}
}

// eachBusy runs work once for each number of computing goroutines in counts.
func eachBusy(b *testing.B, counts []int, work func(busy int) map[string]float64) {
	for _, busy := range counts {
		b.Run(fmt.Sprintf("busy=%d", busy), func(b *testing.B) {
			eachProcs(b, func() map[string]float64 { return work(busy) })
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
		eachBusy(b, choose([]int{2}, []int{0, 2, 4, 16}, []int{0, 2, 4, 16}), func(busy int) map[string]float64 {
			due := m.firstDue(choose(100*time.Millisecond, time.Second, time.Second))
			l := &scatteredTimers{due: make([]time.Duration, n), ranAt: make([]atomic.Int64, n), done: make(chan struct{}), grace: busyGrace}
			l.todo.Store(int32(n))
			for i := range l.due {
				l.due[i] = due
			}
			var stopBusy func()
			l.started = func() { stopBusy = keepBusy(busy) }
			l.run(m)
			stopBusy()
			late, lost := l.lateness()
			if lost > 0 {
				late = append(late, milliseconds(busyGrace))
			}
			return map[string]float64{"last-ms": quantile(late, 1), "p50-ms": quantile(late, 0.5), "lost": float64(lost)}
		})
	})
}

// busyGrace is how long after the last deadline a missing callback counts as lost.
const busyGrace = 60 * time.Second

// BusyRate measures timers with random deadlines, a thousand a second, while other
// goroutines compute. It reports scatteredTimers.figures.
func BusyRate(b *testing.B, m Maker) {
	eachBusy(b, choose([]int{2}, []int{2, 4, 16}, []int{2, 4, 16}), func(busy int) map[string]float64 {
		stopBusy := keepBusy(busy)
		defer stopBusy()
		span := choose(50*time.Millisecond, 2*time.Second, 5*time.Second)
		l := newScattered(max(10, int(span/time.Millisecond)), span)
		l.grace = busyGrace
		l.run(m)
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
	eachProcs(b, func() map[string]float64 {
		n, probes := choose(30, 3000, 3000), 20
		impl := m.New(n + probes)
		defer impl.Close()
		return measureProbes(n, probes, impl.Start)
	})
}

// measureProbes starts n computing callbacks and then, every 10 ms, a probe. It returns the
// figures of BusyQueue.
func measureProbes(n, probes int, start func(slot int, d time.Duration, f func())) map[string]float64 {
	const callbackTime, due, probeDelay, interval = 2 * time.Millisecond, 50 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond
	l := &scatteredTimers{due: make([]time.Duration, probes), ranAt: make([]atomic.Int64, probes)}
	begin := time.Now()
	var all sync.WaitGroup
	for slot := range n {
		all.Add(1)
		start(slot, due-time.Since(begin), func() { compute(callbackTime); all.Done() })
	}
	time.Sleep(due + interval - time.Since(begin))
	for i := range probes {
		l.due[i] = time.Since(begin) + probeDelay
		all.Add(1)
		start(n+i, probeDelay, func() {
			l.ranAt[i].Store(int64(time.Since(begin)))
			all.Done()
		})
		time.Sleep(interval)
	}
	all.Wait()
	late, lost := l.lateness()
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
	numbers := 0
	rng := xorshift(1)
	for begin := time.Now(); time.Since(begin) < 20*time.Millisecond; {
		for range 1000 {
			rng.intN(2)
		}
		numbers += 1000
	}
	return max(1, numbers/20_000)
})
