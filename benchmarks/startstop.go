package benchmarks

import (
	"testing"
	"time"
)

// StartStop starts a timer and stops it again, with n others pending: what a
// request costs that is answered at once. Delays are uniform from 1 to 11
// minutes.
func StartStop(b *testing.B, m Maker) {
	sizes := choose([]int{0, 1_000}, []int{0, 100_000, 1_000_000}, []int{0, 100_000, 1_000_000, 10_000_000})
	withPending(b, m, sizes, longDelay, startStop)
}

// StartStopAlone is StartStop by one goroutine, on one proc and on two.
func StartStopAlone(b *testing.B, m Maker) {
	sizes := choose([]int{1_000}, []int{1_000_000}, []int{1_000_000})
	withPending(b, m, sizes, longDelay, func(b *testing.B, p pending) {
		p.procs = 1
		startStop(b, p)
	})
}

// Limits is StartStop of implementations of which some have a limit of pending timers.
func Limits(b *testing.B, m Maker) {
	withPending(b, m, choose([]int{1_000}, []int{1_000_000}, []int{1_000_000}), longDelay, startStop)
}

// fixed is a timeout as servers have them: the same for every request.
const fixed = 30 * time.Second

// StartStopFixed is StartStop with the same delay for all, of 30 s, as the
// requests of one purgatory have: their deadlines lie close together, so that
// timers that are kept by deadline may all want to be in one place.
func StartStopFixed(b *testing.B, m Maker) {
	sizes := choose([]int{1_000}, []int{100_000}, []int{100_000, 1_000_000})
	withPending(b, m, sizes, func(int) time.Duration { return fixed }, startStop)
}

func startStop(b *testing.B, p pending) {
	p.split(b, func(g, n int) {
		slot := p.n + apart*(g+1)
		for i := range n {
			p.impl.Start(slot, p.delay(i), nop)
			p.impl.Stop(slot)
		}
	})
}
