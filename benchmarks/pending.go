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

// procs are the numbers of procs for workloads.
var procs = []int{1, 2}

// apart is the distance between slots that are used by different goroutines, so that
// their handles are in different cache lines.
const apart = 16

// longDelays are uniform between 1 and 11 minutes, as many as fit into the cache. Their
// number is a power of two, so that an index needs no division.
var longDelays = func() (d [1 << 12]time.Duration) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range d {
		d[i] = time.Minute + time.Duration(rng.Int64N(int64(10*time.Minute)))
	}
	return d
}()

func longDelay(i int) time.Duration { return longDelays[i&(len(longDelays)-1)] }

func nop() {}

// pending is an implementation with pending timers in the first n of its slots, and
// some more slots. There are as many goroutines as procs, and each has a share of the
// n.
type pending struct {
	impl     Impl
	n, procs int
	delay    func(i int) time.Duration
	filled   time.Time // when the timers were started
	// cold says that no timer has been moved or replaced since they were started.
	cold bool
}

// freshness is the maximum age of a workload's pending timers. Older ones are started
// again, so that they do not fire.
const freshness = 10 * time.Second

// withPending runs body as sub-benchmarks n= and p=, with n pending timers of m that
// have the delays of delay.
//
// The testing package may call a benchmark several times to find b.N, and for -count,
// and sets GOMAXPROCS before each call. So each call sets the procs, and the first
// starts the timers. Timers that were just started are in memory in order, which makes
// every implementation faster or slower until they are mixed. So the operation that
// [pending.split] measures first runs as often as there are timers, without being
// measured.
func withPending(b *testing.B, m Maker, sizes []int, delay func(int) time.Duration, body func(*testing.B, pending)) {
	for _, n := range sizes {
		b.Run("n="+Size(n), func(b *testing.B) {
			for _, nprocs := range procs {
				p := pending{n: n, procs: nprocs, delay: delay}
				b.Run(fmt.Sprintf("p=%d", nprocs), func(b *testing.B) {
					defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(nprocs))
					switch {
					case p.impl == nil:
						p.impl = m.New(n + apart*(nprocs+1))
						p.fillFast()
						p.cold = true
					case time.Since(p.filled) > freshness:
						p.startAgain()
						p.cold = true
					}
					b.ReportAllocs()
					body(b, p)
					if p.cold { // it has been warmed up, which may have taken a while
						p.cold, p.filled = false, time.Now()
					}
				})
				if p.impl != nil {
					p.impl.Close()
				}
			}
		})
	}
}

// share returns the slots of goroutine g.
func (p *pending) share(g int) (first, n int) {
	first = p.n * g / p.procs
	return first, p.n*(g+1)/p.procs - first
}

// each calls f for each goroutine at once, and waits for all.
func (p *pending) each(f func(g int)) {
	var wg sync.WaitGroup
	for g := 1; g < p.procs; g++ {
		wg.Go(func() { f(g) })
	}
	f(0)
	wg.Wait()
}

// fill starts the timers.
func (p *pending) fill() {
	p.each(func(g int) {
		first, n := p.share(g)
		for slot := first; slot < first+n; slot++ {
			p.impl.Start(slot, p.delay(slot), nop)
		}
	})
	flush(p.impl)
	p.filled = time.Now()
}

// fillFast is fill without measurement. It avoids most garbage collections of a growing
// heap, which with some implementations take longer than everything else.
func (p *pending) fillFast() {
	percent := debug.SetGCPercent(400)
	p.fill()
	debug.SetGCPercent(percent)
	runtime.GC()
}

// startAgain stops the timers and starts them again.
func (p *pending) startAgain() {
	p.each(func(g int) {
		first, n := p.share(g)
		for slot := first; slot < first+n; slot++ {
			p.impl.Stop(slot)
			p.impl.Start(slot, p.delay(slot), nop)
		}
	})
	flush(p.impl)
	p.filled = time.Now()
}

// split lets each goroutine g do n of b.N operations, and measures the time until the
// implementation has done all.
func (p *pending) split(b *testing.B, body func(g, n int)) {
	if p.cold {
		p.warmUp(body)
	}
	b.ResetTimer()
	p.each(func(g int) { body(g, b.N*(g+1)/p.procs-b.N*g/p.procs) })
	flush(p.impl)
	b.StopTimer()
}

// warmUp runs the operation as often as there are timers, or for warmUpMost.
func (p *pending) warmUp(body func(g, n int)) {
	const parts = 16
	n := max(p.n, 1<<14) / parts
	begin := time.Now()
	for i := 0; i < parts && time.Since(begin) < warmUpMost; i++ {
		p.each(func(g int) { body(g, n/p.procs) })
	}
	flush(p.impl)
	runtime.GC()
}

// warmUpMost is less than freshness, and their sum is less than the shortest delay of a
// pending timer.
const warmUpMost = 5 * time.Second

// fill starts the timers of n slots, from as many goroutines as there are procs.
func fill(impl Impl, n int) {
	p := pending{impl: impl, n: n, procs: runtime.GOMAXPROCS(0), delay: longDelay}
	p.fill()
}

// Size formats n for the names of benchmarks: 100k, 1M.
func Size(n int) string {
	switch {
	case n > 0 && n%1_000_000 == 0:
		return fmt.Sprintf("%dM", n/1_000_000)
	case n > 0 && n%1_000 == 0:
		return fmt.Sprintf("%dk", n/1_000)
	}
	return fmt.Sprint(n)
}
