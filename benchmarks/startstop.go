package benchmarks

import "testing"

// StartStop measures starting a timer and stopping it at once, while n others are pending.
// Delays are random, from 1 to 11 minutes.
func StartStop(b *testing.B, m Maker) {
	timerCounts := choose([]int{0, 1_000}, []int{0, 100_000, 1_000_000}, []int{0, 100_000, 1_000_000, 10_000_000})
	withPendingTimers(b, m, timerCounts, randomDelay, measureStartStop)
}

func measureStartStop(b *testing.B, p pendingTimers) {
	p.measureOperations(b, func(g, n int) {
		slot := p.n + unusedSlotsBetween*(g+1)
		for i := range n {
			p.impl.Start(slot, p.delay(i), doNothing)
			p.impl.Stop(slot)
		}
	})
}
