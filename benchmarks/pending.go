package benchmarks

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"
)

// procCounts are the values of GOMAXPROCS that workloads run with.
var procCounts = []int{1, 2}

// unusedSlotsBetween is the number of unused slots between the slots of two goroutines. It
// keeps the goroutines' handles in different cache lines.
const unusedSlotsBetween = 16

// randomDelays are random delays from 1 to 11 minutes. Their number is a power of two, so
// that randomDelay needs no division.
var randomDelays = func() (d [1 << 12]time.Duration) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range d {
		d[i] = time.Minute + time.Duration(rng.Int64N(int64(10*time.Minute)))
	}
	return d
}()

func randomDelay(i int) time.Duration { return randomDelays[i&(len(randomDelays)-1)] }

func doNothing() {}

// pendingTimers is an Impl with pending timers in its first n slots. Each of procs
// goroutines uses its own part of these slots.
type pendingTimers struct {
	impl      Impl
	n, procs  int
	delay     func(i int) time.Duration
	startedAt time.Time // when the timers were started
	// needsWarmUp is true while the timers are new: see warmUp.
	needsWarmUp bool
}

// Before a measurement, timers older than maxTimerAge are started again, so that none fires
// during the measurement.
const maxTimerAge = 10 * time.Second

// withPendingTimers runs body as a sub-benchmark for each number n in sizes and each
// number of procs, while n timers are pending. The timer in slot i has the delay
// delay(i).
func withPendingTimers(b *testing.B, m Maker, sizes []int, delay func(int) time.Duration, body func(*testing.B, pendingTimers)) {
	for _, n := range sizes {
		b.Run("n="+Size(n), func(b *testing.B) {
			for _, nprocs := range procCounts {
				p := pendingTimers{n: n, procs: nprocs, delay: delay}
				b.Run(fmt.Sprintf("p=%d", nprocs), func(b *testing.B) {
					defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(nprocs)) // the testing package changes it before each call
					switch {
					case p.impl == nil: // the first of several calls of this function
						p.impl = m.New(n + unusedSlotsBetween*(nprocs+1))
						p.fillSlotsFast()
						p.needsWarmUp = true
					case time.Since(p.startedAt) > maxTimerAge:
						p.restartTimers()
						p.needsWarmUp = true
					}
					b.ReportAllocs()
					body(b, p)
					if p.needsWarmUp { // body has warmed up; do not count that time as age
						p.needsWarmUp, p.startedAt = false, time.Now()
					}
				})
				if p.impl != nil {
					p.impl.Close()
				}
			}
		})
	}
}

// slotsOfGoroutine returns the first slot of goroutine g, and how many slots it has.
func (p *pendingTimers) slotsOfGoroutine(g int) (first, count int) {
	first = p.n * g / p.procs
	return first, p.n*(g+1)/p.procs - first
}

// onEachGoroutine calls f on one goroutine per proc, with the goroutine's number, and waits
// for all.
func (p *pendingTimers) onEachGoroutine(f func(g int)) {
	var wg sync.WaitGroup
	for g := 1; g < p.procs; g++ {
		wg.Go(func() { f(g) })
	}
	f(0)
	wg.Wait()
}

// fillSlots starts a timer in each of the n slots.
func (p *pendingTimers) fillSlots() {
	p.onEachGoroutine(func(g int) {
		first, count := p.slotsOfGoroutine(g)
		for slot := first; slot < first+count; slot++ {
			p.impl.Start(slot, p.delay(slot), doNothing)
		}
	})
	flush(p.impl)
	p.startedAt = time.Now()
}

// fillSlotsFast is fillSlots with fewer garbage collections, for a fill that is not
// measured.
func (p *pendingTimers) fillSlotsFast() {
	oldGCPercent := debug.SetGCPercent(400)
	p.fillSlots()
	debug.SetGCPercent(oldGCPercent)
	runtime.GC()
}

// restartTimers stops the timers and starts them again.
func (p *pendingTimers) restartTimers() {
	p.onEachGoroutine(func(g int) {
		first, count := p.slotsOfGoroutine(g)
		for slot := first; slot < first+count; slot++ {
			p.impl.Stop(slot)
			p.impl.Start(slot, p.delay(slot), doNothing)
		}
	})
	flush(p.impl)
	p.startedAt = time.Now()
}

// measureOperations divides b.N operations among the goroutines and measures how long
// they take. body(g, n) does n operations on goroutine g.
func (p *pendingTimers) measureOperations(b *testing.B, body func(g, n int)) {
	if p.needsWarmUp {
		p.warmUp(body)
	}
	b.ResetTimer()
	p.onEachGoroutine(func(g int) { body(g, b.N*(g+1)/p.procs-b.N*g/p.procs) })
	flush(p.impl)
	b.StopTimer()
}

// warmUp runs the operation about as often as there are timers, for at most
// maxWarmUpTime. New timers are in memory in slot order. The warm-up changes that,
// because a real program's timers have no such order.
func (p *pendingTimers) warmUp(body func(g, n int)) {
	const parts = 16
	n := max(p.n, 1<<14) / parts
	startTime := time.Now()
	for i := 0; i < parts && time.Since(startTime) < maxWarmUpTime; i++ {
		p.onEachGoroutine(func(g int) { body(g, n/p.procs) })
	}
	flush(p.impl)
	runtime.GC()
}

// maxWarmUpTime + maxTimerAge is less than the shortest delay, so no timer fires.
const maxWarmUpTime = 5 * time.Second

// startTimers starts n timers, on one goroutine per proc.
func startTimers(impl Impl, n int) {
	p := pendingTimers{impl: impl, n: n, procs: runtime.GOMAXPROCS(0), delay: randomDelay}
	p.fillSlots()
}

// Size formats n for the names of benchmarks, such as 100k or 1M.
func Size(n int) string {
	switch {
	case n > 0 && n%1_000_000 == 0:
		return fmt.Sprintf("%dM", n/1_000_000)
	case n > 0 && n%1_000 == 0:
		return fmt.Sprintf("%dk", n/1_000)
	}
	return fmt.Sprint(n)
}
