package benchmarks

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

// StopReset measures what a server pays to renew a read deadline before each read. It stops
// a random one of n pending timers and resets it. It reports ns/pair: the time of a Stop
// and a Reset.
//
//   - delay=random: new delays are random, from 1 to 11 minutes
//   - delay=same: all new delays are 5 minutes
func StopReset(b *testing.B, m Maker) {
	for _, w := range []struct {
		name  string
		delay func(int) time.Duration
	}{{"random", randomDelay}, {"same", func(int) time.Duration { return 5 * time.Minute }}} {
		for _, n := range choose([]int{1_000}, []int{300_000}, []int{300_000}) {
			b.Run(fmt.Sprintf("delay=%s/n=%s", w.name, Size(n)), func(b *testing.B) {
				forEachProcCount(b, func() map[string]float64 { return measureStopReset(m, n, w.delay) })
			})
		}
	}
}

func measureStopReset(m Maker, n int, delay func(int) time.Duration) map[string]float64 {
	p := pendingTimers{impl: m.New(n), n: n, procs: runtime.GOMAXPROCS(0), delay: delay}
	defer p.impl.Close()
	p.fillSlotsFast()
	runStopResetPairs := func(pairsPerGoroutine int) {
		p.onEachGoroutine(func(g int) {
			first, count := p.slotsOfGoroutine(g)
			rng := newXorshift()
			for i := range pairsPerGoroutine {
				slot := first + rng.intN(count)
				p.impl.Stop(slot)
				p.impl.Reset(slot, delay(i))
			}
		})
		flush(p.impl)
	}
	pairsPerGoroutine := choose(1_000, 2_000_000, 2_000_000) / p.procs
	runStopResetPairs(pairsPerGoroutine) // warm-up: resets nearly every timer
	startTime := time.Now()
	runStopResetPairs(pairsPerGoroutine)
	return map[string]float64{"ns/pair": float64(time.Since(startTime)) / float64(pairsPerGoroutine*p.procs)}
}
