package benchmarks

import (
	"runtime"
	"testing"

	"go.uber.org/atomic"
)

// Churn stops a random one of n pending timers and starts another: what a
// request costs that is answered after a while. On several procs each
// goroutine has timers of its own.
func Churn(b *testing.B, m Maker) {
	withPending(b, m, []int{10_000, 100_000, 1_000_000}, func(b *testing.B, impl Impl, n int) {
		p := runtime.GOMAXPROCS(0)
		if p == 1 {
			rng, i := xorshift(1), 0
			for b.Loop() {
				slot := rng.below(n)
				impl.Stop(slot)
				impl.Start(slot, longDelay(i), nop)
				i++
			}
			return
		}
		var goroutines atomic.Int32
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			g := int(goroutines.Inc()) - 1
			first, own := n*g/p, n*(g+1)/p-n*g/p
			rng, i := xorshift(g+1), 0
			for pb.Next() {
				slot := first + rng.below(own)
				impl.Stop(slot)
				impl.Start(slot, longDelay(i), nop)
				i++
			}
		})
	})
}

// xorshift is a random source of a nanosecond a draw (Marsaglia's xorshift64),
// so that it costs little of what is measured. It must not be zero.
type xorshift uint64

// below returns a number from 0 to n-1; n is below 2^32.
func (x *xorshift) below(n int) int {
	v := *x
	v ^= v << 13
	v ^= v >> 7
	v ^= v << 17
	*x = v
	return int(uint64(v) >> 32 * uint64(n) >> 32)
}
