package benchmarks

import (
	"runtime"
	"testing"

	"go.uber.org/atomic"
)

// StartStop starts a timer and stops it again, with n others pending: what a
// request costs that is answered at once.
func StartStop(b *testing.B, m Maker) {
	withPending(b, m, []int{0, 100_000, 1_000_000}, func(b *testing.B, impl Impl, n int) {
		if runtime.GOMAXPROCS(0) == 1 {
			slot, i := n+apart, 0
			for b.Loop() {
				impl.Start(slot, longDelay(i), nop)
				impl.Stop(slot)
				i++
			}
			return
		}
		var goroutines atomic.Int32
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			slot, i := n+apart*int(goroutines.Inc()), 0
			for pb.Next() {
				impl.Start(slot, longDelay(i), nop)
				impl.Stop(slot)
				i++
			}
		})
	})
}
