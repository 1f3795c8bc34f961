package benchmarks

import (
	"testing"

	"go.uber.org/atomic"
)

// Churn measures the cost of giving each request a timeout. It stops a random one of n
// pending timers, and starts a new timer in its place.
func Churn(b *testing.B, m Maker) {
	timerCounts := choose([]int{1_000}, []int{100_000, 1_000_000}, []int{10_000, 100_000, 1_000_000, 10_000_000})
	withPendingTimers(b, m, timerCounts, randomDelay, func(b *testing.B, p pendingTimers) {
		p.measureOperations(b, func(g, n int) {
			first, count := p.slotsOfGoroutine(g)
			rng := newXorshift()
			for i := range n {
				slot := first + rng.intN(count)
				p.impl.Stop(slot)
				p.impl.Start(slot, p.delay(i), doNothing)
			}
		})
	})
}

// xorshift is the random number generator xorshift64, which takes about a nanosecond per
// number. Its value must not be zero.
type xorshift uint64

// generatorCount counts the calls of newXorshift.
var generatorCount atomic.Uint64

// newXorshift returns a generator with a new seed, so that each run visits the timers in
// another order.
func newXorshift() xorshift { return xorshift(generatorCount.Inc() * 0x9e3779b97f4a7c15) }

// intN returns a random number from 0 to n-1. n must be less than 2^32.
func (x *xorshift) intN(n int) int {
	v := *x
	v ^= v << 13
	v ^= v >> 7
	v ^= v << 17
	*x = v
	return int(uint64(v) >> 32 * uint64(n) >> 32)
}
