package timingwheel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// Time is in nanoseconds, the tick is 1 ms, and deadlines are spread over the next hour.
const (
	benchTick = 1e6
	benchSpan = 3600e9
)

var benchSizes = []struct {
	name string
	n    int
}{{"0", 0}, {"10k", 10_000}, {"1M", 1_000_000}}

// benchWheel returns a wheel with n pending entries, and 64k random delays. It draws the
// delays in advance, outside the measured loop.
func benchWheel(b *testing.B, n int) (w *Wheel[func()], ids []ID, delays []int64) {
	w, err := New[func()](benchTick, 256, 0)
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	delays = make([]int64, 1<<16)
	for k := range delays {
		delays[k] = benchTick + rng.Int64N(benchSpan)
	}
	f := func() {}
	ids = make([]ID, n)
	for k := range ids {
		ids[k], _ = w.Add(benchTick+rng.Int64N(benchSpan), f)
	}
	return w, ids, delays
}

// BenchmarkAddRemove adds an entry and removes it while n others are pending.
func BenchmarkAddRemove(b *testing.B) {
	for _, size := range benchSizes {
		b.Run("n="+size.name, func(b *testing.B) {
			w, _, delays := benchWheel(b, size.n)
			f := func() {}
			b.ReportAllocs()
			k := 0
			for b.Loop() {
				id, _ := w.Add(delays[k&(1<<16-1)], f)
				w.Remove(id)
				k++
			}
		})
	}
}

// BenchmarkChurn removes a random one of n pending entries and adds a new one.
func BenchmarkChurn(b *testing.B) {
	for _, size := range benchSizes[1:] {
		b.Run("n="+size.name, func(b *testing.B) {
			w, ids, delays := benchWheel(b, size.n)
			f := func() {}
			b.ReportAllocs()
			k := 0
			for b.Loop() {
				victim := &ids[rand.IntN(len(ids))]
				w.Remove(*victim)
				*victim, _ = w.Add(delays[k&(1<<16-1)], f)
				k++
			}
		})
	}
}

// BenchmarkMove moves one of n pending entries, chosen at random. With to=later, a move
// only writes the deadline.
func BenchmarkMove(b *testing.B) {
	for _, to := range []string{"later", "anywhere"} {
		for _, size := range benchSizes[1:] {
			b.Run(fmt.Sprintf("to=%s/n=%s", to, size.name), func(b *testing.B) {
				w, ids, delays := benchWheel(b, size.n)
				base := int64(0)
				if to == "later" {
					base = benchSpan
				}
				b.ReportAllocs()
				k := 0
				for b.Loop() {
					w.Move(ids[rand.IntN(len(ids))], base+delays[k&(1<<16-1)])
					k++
				}
			})
		}
	}
}

// BenchmarkAdvance hands out n entries that are due within an hour, one millisecond at a
// time. It reports the time for each entry.
func BenchmarkAdvance(b *testing.B) {
	for _, size := range benchSizes[1:] {
		b.Run("n="+size.name, func(b *testing.B) {
			b.ReportAllocs()
			out := make([]Expired[func()], 256)
			handed := 0
			for b.Loop() {
				b.StopTimer()
				w, _, _ := benchWheel(b, size.n)
				b.StartTimer()
				for next, ok := w.Next(); ok; next, ok = w.Next() {
					for more := true; more; {
						var n int
						n, more = w.Advance(next, out)
						handed += n
					}
				}
			}
			if handed != b.N*size.n {
				b.Fatalf("%d entries, want %d", handed, b.N*size.n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(handed), "ns/entry")
		})
	}
}

// BenchmarkTicks compares a multiplication and a division for converting times to ticks.
func BenchmarkTicks(b *testing.B) {
	k := newTickConverter(benchTick, 0)
	tickLength := k.tickLength
	for _, impl := range []struct {
		name string
		ceil func(int64) int64
	}{
		{"multiply", func(n int64) int64 { return k.ceilTick(n, 0) }},
		{"divide", func(n int64) int64 {
			if n <= 0 {
				return 0
			}
			return (n-1)/tickLength + 1
		}},
	} {
		b.Run("impl="+impl.name, func(b *testing.B) {
			b.ReportAllocs()
			// Each conversion depends on the previous one. So the benchmark measures
			// latency, which is what counts in Add.
			n := int64(1)
			for b.Loop() {
				n = impl.ceil(n) + 1<<40
			}
		})
	}
}
