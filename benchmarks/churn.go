package benchmarks

import (
	"testing"

	"go.uber.org/atomic"
)

// Churn measures stopping a random one of n pending timers and starting another: what a
// request with a timeout costs. Each proc has a goroutine with its own timers.
func Churn(b *testing.B, m Maker) {
	sizes := choose([]int{1_000}, []int{100_000, 1_000_000}, []int{10_000, 100_000, 1_000_000, 10_000_000})
	withPending(b, m, sizes, longDelay, func(b *testing.B, p pendingTimers) {
		p.measure(b, func(g, n int) {
			first, count := p.slotsOf(g)
			rng := newXorshift()
			for i := range n {
				slot := first + rng.intN(count)
				p.impl.Stop(slot)
				p.impl.Start(slot, p.delay(i), nop)
			}
		})
	})
}

// xorshift is Marsaglia's random number generator xorshift64. A number takes about a
// nanosecond, so it hardly affects a measurement. Its value must not be zero.
type xorshift uint64

// generators counts the calls of newXorshift.
var generators atomic.Uint64

// newXorshift returns a generator with a new seed. With the same seed, each run would use
// memory in the same order as the run before. Real programs do not.
func newXorshift() xorshift { return xorshift(generators.Inc() * 0x9e3779b97f4a7c15) }

// intN returns a random number from 0 to n-1. n must be less than 2^32.
func (x *xorshift) intN(n int) int {
	v := *x
	v ^= v << 13
	v ^= v >> 7
	v ^= v << 17
	*x = v
	return int(uint64(v) >> 32 * uint64(n) >> 32)
}
