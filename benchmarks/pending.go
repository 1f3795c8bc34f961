package benchmarks

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"
)

// The numbers of procs that workloads run on.
var procs = []int{1, 2}

// apart is the distance in slots between goroutines that use one slot each,
// so that their handles lie in different cache lines.
const apart = 16

// longDelays are uniform between 1 and 11 minutes, as many as fit the cache.
// A power of two, so that an index is masked rather than divided.
var longDelays = func() (d [1 << 12]time.Duration) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range d {
		d[i] = time.Minute + time.Duration(rng.Int64N(int64(10*time.Minute)))
	}
	return d
}()

func longDelay(i int) time.Duration { return longDelays[i&(len(longDelays)-1)] }

func nop() {}

// fill starts the timers of n slots, from as many goroutines as there are
// procs.
func fill(impl Impl, n int) {
	var wg sync.WaitGroup
	nprocs := runtime.GOMAXPROCS(0)
	for g := range nprocs {
		wg.Go(func() {
			for slot := n * g / nprocs; slot < n*(g+1)/nprocs; slot++ {
				impl.Start(slot, longDelay(slot), nop)
			}
		})
	}
	wg.Wait()
}

// withPending runs body as sub-benchmarks n= and p=, with n timers of impl
// pending in the first n of its slots and some slots more.
//
// The testing package may call a benchmark several times to find a b.N, and
// it sets GOMAXPROCS before each call. So the procs are set in each call, and
// the timers are started in the first.
func withPending(b *testing.B, m Maker, sizes []int, body func(b *testing.B, impl Impl, n int)) {
	for _, n := range sizes {
		b.Run("n="+Size(n), func(b *testing.B) {
			for _, p := range procs {
				var impl Impl
				b.Run(fmt.Sprintf("p=%d", p), func(b *testing.B) {
					defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(p))
					if impl == nil {
						impl = m.New(n + apart*(p+1))
						fill(impl, n)
						runtime.GC()
					}
					b.ReportAllocs()
					body(b, impl, n)
				})
				if impl != nil {
					impl.Close()
				}
			}
		})
	}
}

// Size writes n as benchmarks' names have it: 100k, 1M.
func Size(n int) string {
	switch {
	case n > 0 && n%1_000_000 == 0:
		return fmt.Sprintf("%dM", n/1_000_000)
	case n > 0 && n%1_000 == 0:
		return fmt.Sprintf("%dk", n/1_000)
	}
	return fmt.Sprint(n)
}
