package benchmarks

import (
	"testing"

	"go.uber.org/atomic"
)

// Churn stops a random one of n pending timers and starts another: the cost of a
// request that is answered after a while. On several procs each goroutine has its own
// timers.
func Churn(b *testing.B, m Maker) {
	sizes := choose([]int{1_000}, []int{100_000, 1_000_000}, []int{10_000, 100_000, 1_000_000, 10_000_000})
	withPending(b, m, sizes, longDelay, func(b *testing.B, p pending) {
		p.split(b, func(g, n int) {
			first, own := p.share(g)
			rng := newXorshift()
			for i := range n {
				slot := first + rng.below(own)
				p.impl.Stop(slot)
				p.impl.Start(slot, p.delay(i), nop)
			}
		})
	})
}

// xorshift is a random source that takes a nanosecond for a number (Marsaglia's
// xorshift64), so that it hardly affects the measurement. It must not be zero.
type xorshift uint64

// sources counts the sources that newXorshift has returned.
var sources atomic.Uint64

// newXorshift returns a source with another seed each time. (If a run used the numbers
// of the previous run, it would use the memory in the order in which that run left it.)
func newXorshift() xorshift { return xorshift(sources.Inc() * 0x9e3779b97f4a7c15) }

// below returns a number from 0 to n-1; n is below 2^32.
func (x *xorshift) below(n int) int {
	v := *x
	v ^= v << 13
	v ^= v >> 7
	v ^= v << 17
	*x = v
	return int(uint64(v) >> 32 * uint64(n) >> 32)
}
