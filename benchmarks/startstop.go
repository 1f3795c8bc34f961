package benchmarks

import "testing"

// StartStop starts a timer and stops it again, with n others pending: the cost of a
// request that is answered at once. Delays are uniform from 1 to 11 minutes.
func StartStop(b *testing.B, m Maker) {
	sizes := choose([]int{0, 1_000}, []int{0, 100_000, 1_000_000}, []int{0, 100_000, 1_000_000, 10_000_000})
	withPending(b, m, sizes, longDelay, startStop)
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
