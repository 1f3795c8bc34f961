package benchmarks

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

// StopReset stops a random one of n pending timers and resets it: the cost of a
// SetDeadline before every read, or of an idle timeout that is stopped during work. The
// new delay is 1 to 11 minutes at random, as for the other timers (delay=random), or
// always 5 minutes, later than before (delay=same). On several procs each goroutine has
// its own timers.
//
// Each measurement has its own process. It reports ns/pair, for a Stop and a Reset.
func StopReset(b *testing.B, m Maker) {
	for _, w := range []struct {
		name  string
		delay func(int) time.Duration
	}{{"random", longDelay}, {"same", func(int) time.Duration { return 5 * time.Minute }}} {
		for _, n := range choose([]int{1_000}, []int{300_000}, []int{300_000}) {
			b.Run(fmt.Sprintf("delay=%s/n=%s", w.name, Size(n)), func(b *testing.B) {
				onProcs(b, func() map[string]float64 { return stopReset(m, n, w.delay) })
			})
		}
	}
}

func stopReset(m Maker, n int, delay func(int) time.Duration) map[string]float64 {
	p := pending{impl: m.New(n), n: n, procs: runtime.GOMAXPROCS(0), delay: delay}
	defer p.impl.Close()
	p.fillFast()
	pairs := func(each int) {
		p.each(func(g int) {
			first, own := p.share(g)
			rng := newXorshift()
			for i := range each {
				slot := first + rng.below(own)
				p.impl.Stop(slot)
				p.impl.Reset(slot, delay(i))
			}
		})
		flush(p.impl)
	}
	each := choose(1_000, 2_000_000, 2_000_000) / p.procs
	pairs(each) // every timer has been reset before
	begin := time.Now()
	pairs(each)
	return map[string]float64{"ns/pair": float64(time.Since(begin)) / float64(each*p.procs)}
}
