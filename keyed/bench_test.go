package keyed_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tickless/tickless/keyed"
	"github.com/tickless/tickless/timer"
)

// delay returns a duration between 1 and 11 minutes.
func delay(i int) time.Duration { return time.Minute + time.Duration(i)*7919%(10*time.Minute) }

// BenchmarkSet sets existing keys in random order.
func BenchmarkSet(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		for _, p := range []int{1, 2} {
			b.Run(fmt.Sprintf("n=%d/p=%d", n, p), func(b *testing.B) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(p))
				s := timer.New()
				defer s.Close()
				k := keyed.New(s, func(int, int) {})
				for i := range n {
					k.Set(i, i, delay(i))
				}
				keys := rand.New(rand.NewPCG(5, 6)).Perm(n)
				var goroutines atomic.Int32
				b.ReportAllocs()
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					i := n / p * int(goroutines.Add(1))
					for pb.Next() {
						k.Set(keys[i%n], i, 12*time.Minute+delay(i))
						i++
					}
				})
				b.StopTimer() // do not measure the close
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Msets/s")
			})
		}
	}
}
