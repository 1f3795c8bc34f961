package keyed_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
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

// BenchmarkRead reads a million string keys in random order.
func BenchmarkRead(b *testing.B) {
	const n = 1_000_000
	s := timer.New()
	defer s.Close()
	k := keyed.New(s, func(string, int) {})
	names := make([]string, n)
	for i := range names {
		names[i] = "session-" + strconv.Itoa(i)
		k.Set(names[i], i, delay(i))
	}
	rand.Shuffle(n, func(i, j int) { names[i], names[j] = names[j], names[i] })
	for name, read := range map[string]func(string){
		"Get":        func(name string) { k.Get(name) },
		"GetAndMove": func(name string) { k.GetAndMove(name, 12*time.Minute) },
		"Set":        func(name string) { k.Set(name, 1, 12*time.Minute) },
	} {
		for _, p := range []int{1, 2} {
			b.Run(fmt.Sprintf("method=%s/p=%d", name, p), func(b *testing.B) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(p))
				var goroutines atomic.Int32
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					for i := n / p * int(goroutines.Add(1)); pb.Next(); i++ {
						read(names[i%n])
					}
				})
			})
		}
	}
}

// BenchmarkLen_WhileKeysExpire calls Len after each expiry of one of 300,000 keys.
func BenchmarkLen_WhileKeysExpire(b *testing.B) {
	s, clk := virtual(b)
	k := keyed.New(s, func(int, int) {})
	for i := range 300_000 {
		k.Set(i, i, time.Hour)
	}
	for b.Loop() {
		b.StopTimer()
		k.Set(-1, 0, time.Millisecond)
		clk.Advance(time.Millisecond)
		b.StartTimer()
		k.Len()
	}
}
