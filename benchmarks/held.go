package benchmarks

import (
	"runtime"
	"runtime/metrics"
	"slices"
	"testing"
	"time"
)

// Held starts a million timers and leaves them pending. It reports
//
//   - ns/start: what starting one takes, on as many procs as there are;
//   - B/timer: the live heap bytes a pending timer, neither the caller's
//     handle nor the callback counted;
//   - gc-ms: how long a full collection takes with them pending and the
//     caller's handles kept.
func Held(b *testing.B, m Maker) {
	const n = 1_000_000
	b.Run("n="+Size(n), func(b *testing.B) {
		var (
			starting time.Duration
			bytes    int64
			fullGC   []float64
		)
		for b.Loop() {
			impl := m.New(n)
			baseline := liveHeap()
			begin := time.Now()
			fill(impl, n)
			starting += time.Since(begin)
			bytes += liveHeap() - baseline
			for range 5 {
				begin := time.Now()
				runtime.GC()
				fullGC = append(fullGC, milliseconds(time.Since(begin)))
			}
			impl.Close()
		}
		started := float64(b.N) * n
		b.ReportMetric(0, "ns/op") // says nothing: hidden
		b.ReportMetric(float64(starting.Nanoseconds())/started, "ns/start")
		b.ReportMetric(float64(bytes)/started, "B/timer")
		b.ReportMetric(quantile(fullGC, 0.5), "gc-ms")
	})
}

// liveHeap collects garbage and returns the bytes that the collector found
// alive.
func liveHeap() int64 {
	runtime.GC()
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// quantile sorts values, of which there is at least one, and returns the one
// below which the share q of them lies.
func quantile(values []float64, q float64) float64 {
	slices.Sort(values)
	return values[min(int(q*float64(len(values))), len(values)-1)]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
