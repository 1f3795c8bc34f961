package benchmarks

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"
)

// The workloads of this file run timers beside goroutines that compute, as in a server.
// Each implementation runs in its own process.

// onProcs runs work with each number of procs, each time in its own process.
func onProcs(b *testing.B, work func() map[string]float64) {
	for _, p := range choose([]int{2}, procs, procs) {
		b.Run(fmt.Sprintf("p=%d", p), func(b *testing.B) {
			reportProcess(b, func() map[string]float64 {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(p))
				return work()
			})
		})
	}
}

// beside runs a workload beside each number of computing goroutines.
func beside(b *testing.B, busy []int, work func(busy int) map[string]float64) {
	for _, busy := range busy {
		b.Run(fmt.Sprintf("busy=%d", busy), func(b *testing.B) {
			onProcs(b, func() map[string]float64 { return work(busy) })
		})
	}
}

// BusyBurst lets 100,000 timers fall due at the same time beside goroutines that
// compute. It reports last-ms, how late the last callback ran, p50-ms, and lost.
func BusyBurst(b *testing.B, m Maker) {
	n := choose(1000, 100_000, 100_000)
	b.Run("n="+Size(n), func(b *testing.B) {
		beside(b, choose([]int{2}, []int{0, 2, 4, 16}, []int{0, 2, 4, 16}), func(busy int) map[string]float64 {
			lead := m.lead(choose(100*time.Millisecond, time.Second, time.Second))
			l := &scattered{due: make([]time.Duration, n), ran: make([]atomic.Int64, n), done: make(chan struct{}), grace: busyGrace}
			l.todo.Store(int32(n))
			for i := range l.due {
				l.due[i] = lead
			}
			var stop func()
			l.started = func() { stop = keepBusy(busy) }
			l.run(m)
			stop()
			late, lost := l.lateness()
			if lost > 0 {
				late = append(late, milliseconds(busyGrace))
			}
			return map[string]float64{"last-ms": quantile(late, 1), "p50-ms": quantile(late, 0.5), "lost": float64(lost)}
		})
	})
}

// busyGrace is how long after the last deadline a callback counts as lost.
const busyGrace = 60 * time.Second

// BusyRate lets a thousand timers a second fall due, at random times, beside goroutines
// that compute. It reports p50-ms and p99-ms, how late they ran, early and lost.
func BusyRate(b *testing.B, m Maker) {
	beside(b, choose([]int{2}, []int{2, 4, 16}, []int{2, 4, 16}), func(busy int) map[string]float64 {
		stop := keepBusy(busy)
		defer stop()
		span := choose(50*time.Millisecond, 2*time.Second, 5*time.Second)
		l := newScattered(max(10, int(span/time.Millisecond)), span)
		l.grace = busyGrace
		l.run(m)
		return l.figures()
	})
}

// BusyQueue lets 3,000 callbacks that each compute for two milliseconds fall due at
// once, and then a series of timers with empty callbacks. It reports p50-ms and
// worst-ms, how late the empty callbacks ran, and lost.
func BusyQueue(b *testing.B, m Maker) {
	onProcs(b, func() map[string]float64 {
		n, probes := choose(30, 3000, 3000), 20
		impl := m.New(n + probes)
		defer impl.Close()
		return behind(n, probes, func(slot int, d time.Duration, f func()) { impl.Start(slot, d, f) })
	})
}

// behind starts n timers with callbacks of two milliseconds for the same time, and then
// probes, 10 ms apart.
func behind(n, probes int, start func(slot int, d time.Duration, f func())) map[string]float64 {
	const work, lead, probe, apart = 2 * time.Millisecond, 50 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond
	l := &scattered{due: make([]time.Duration, probes), ran: make([]atomic.Int64, probes)}
	base := time.Now()
	var all sync.WaitGroup
	for slot := range n {
		all.Add(1)
		start(slot, lead-time.Since(base), func() { compute(work); all.Done() })
	}
	time.Sleep(lead + apart - time.Since(base))
	for i := range probes {
		l.due[i] = time.Since(base) + probe
		all.Add(1)
		start(n+i, probe, func() {
			l.ran[i].Store(int64(time.Since(base)))
			all.Done()
		})
		time.Sleep(apart)
	}
	all.Wait()
	late, lost := l.lateness()
	return map[string]float64{"p50-ms": quantile(late, 0.5), "worst-ms": quantile(late, 1), "lost": float64(lost)}
}

// compute uses a proc for about d. It counts its own work, not time: two calls that
// share a proc take twice as long.
func compute(d time.Duration) {
	rng := xorshift(1)
	for range int(d.Microseconds()) * computeRounds() {
		rng.below(2)
	}
}

// computeRounds is how many numbers xorshift returns in a microsecond on this machine.
var computeRounds = sync.OnceValue(func() int {
	rounds := 0
	rng := xorshift(1)
	for begin := time.Now(); time.Since(begin) < 20*time.Millisecond; {
		for range 1000 {
			rng.below(2)
		}
		rounds++
	}
	return max(1, rounds*1000/20_000)
})
