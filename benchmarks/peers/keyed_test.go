package peers

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/zeromicro/go-zero/core/collection"

	"github.com/tickless/tickless/benchmarks"
	"github.com/tickless/tickless/keyed"
	"github.com/tickless/tickless/timer"
)

// BenchmarkKeyedSet measures giving a pending key a new value and a later deadline. The
// keys come in random order.
func BenchmarkKeyedSet(b *testing.B) {
	sizes := []int{10_000, 1_000_000}
	if testing.Short() {
		sizes = sizes[:1]
	}
	for _, n := range sizes {
		keys := rand.New(rand.NewPCG(5, 6)).Perm(n)
		delays := make([]time.Duration, 1<<16)
		for i := range delays {
			delays[i] = time.Minute + time.Duration(rand.Int64N(int64(10*time.Minute)))
		}
		run := func(b *testing.B, set func(key, value int, d time.Duration), flush func()) {
			for i := range n {
				set(i, i, delays[i%len(delays)])
			}
			flush()
			i := 0
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				set(keys[i%n], i, 12*time.Minute+delays[i%len(delays)])
				i++
			}
			flush()
			b.StopTimer() // do not measure Close
		}
		b.Run(fmt.Sprintf("impl=tickless/n=%s", benchmarks.Size(n)), func(b *testing.B) {
			s := timer.New()
			defer s.Close()
			k := keyed.New(s, func(int, int) {})
			run(b, func(key, value int, d time.Duration) { k.Set(key, value, d) }, func() {})
		})
		b.Run(fmt.Sprintf("impl=go-zero/n=%s", benchmarks.Size(n)), func(b *testing.B) {
			w, err := collection.NewTimingWheel(time.Second, 300, func(any, any) {})
			if err != nil {
				b.Fatal(err)
			}
			defer w.Stop()
			run(b,
				func(key, value int, d time.Duration) { w.SetTimer(key, value, d) },
				// The wheel's goroutine receives this request, which does nothing, when it
				// has processed all earlier requests.
				func() { w.RemoveTimer(-1) })
		})
	}
}
