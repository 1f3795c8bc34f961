package benchmarks

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"slices"
	"testing"
	"time"
)

// Held starts a million timers in a new process, and leaves them pending. It reports
//
//   - ns/start: the time to start a timer
//   - B/timer: heap bytes per timer, without its handle and callback
//   - peak-B/timer: how much the peak memory of the process grew per timer (only on Linux)
//   - gc-ms: the duration of a full garbage collection
func Held(b *testing.B, m Maker) {
	n := choose(10_000, 1_000_000, 1_000_000)
	b.Run("n="+Size(n), func(b *testing.B) {
		for _, p := range procCounts {
			b.Run(fmt.Sprintf("p=%d", p), func(b *testing.B) {
				reportChildFigures(b, func() map[string]float64 {
					defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(p))
					return measureHeld(m, n)
				})
			})
		}
	})
}

func measureHeld(m Maker, n int) map[string]float64 {
	impl := m.New(n)
	defer impl.Close()
	heapBefore := liveHeapBytes()
	memoryBefore, _, hasMemory := processMemory()
	startTime := time.Now()
	startTimers(impl, n)
	elapsed := time.Since(startTime)
	_, peak, _ := processMemory()
	figures := map[string]float64{
		"ns/start": float64(elapsed.Nanoseconds()) / float64(n),
		"B/timer":  float64(liveHeapBytes()-heapBefore) / float64(n),
	}
	if hasMemory {
		figures["peak-B/timer"] = float64(peak-memoryBefore) / float64(n)
	}
	var gcTimes []float64
	for range 5 {
		startTime := time.Now()
		runtime.GC()
		gcTimes = append(gcTimes, milliseconds(time.Since(startTime)))
	}
	figures["gc-ms"] = quantile(gcTimes, 0.5)
	return figures
}

// liveHeapBytes runs the garbage collector and returns the size of the live heap.
func liveHeapBytes() int64 {
	runtime.GC()
	heapSample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(heapSample)
	return int64(heapSample[0].Value.Uint64())
}

// quantile sorts values and returns the q-quantile: the median for q=0.5, the largest
// for q=1. values must not be empty.
func quantile(values []float64, q float64) float64 {
	slices.Sort(values)
	return values[min(int(q*float64(len(values))), len(values)-1)]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
