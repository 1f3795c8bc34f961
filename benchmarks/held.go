package benchmarks

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"slices"
	"testing"
	"time"
)

// Held starts a million timers and leaves them pending, in its own process. It reports
//
//   - ns/start: the time to start a timer;
//   - B/timer: the live heap bytes of a pending timer, without the caller's handle and the
//     callback;
//   - peak-B/timer: the peak memory of the process (VmHWM) above the memory before, for each
//     timer, on Linux;
//   - gc-ms: the duration of a full garbage collection with the timers pending. All have the
//     same callback, and the caller keeps the handles.
func Held(b *testing.B, m Maker) {
	n := choose(10_000, 1_000_000, 1_000_000)
	b.Run("n="+Size(n), func(b *testing.B) {
		for _, p := range procs {
			b.Run(fmt.Sprintf("p=%d", p), func(b *testing.B) {
				reportProcess(b, func() map[string]float64 {
					defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(p))
					return hold(m, n)
				})
			})
		}
	})
}

func hold(m Maker, n int) map[string]float64 {
	impl := m.New(n)
	defer impl.Close()
	baseline := liveHeap()
	resident, _, hasMemory := processMemory()
	begin := time.Now()
	fill(impl, n)
	took := time.Since(begin)
	_, peak, _ := processMemory()
	figures := map[string]float64{
		"ns/start": float64(took.Nanoseconds()) / float64(n),
		"B/timer":  float64(liveHeap()-baseline) / float64(n),
	}
	if hasMemory {
		figures["peak-B/timer"] = float64(peak-resident) / float64(n)
	}
	var fullGC []float64
	for range 5 {
		begin := time.Now()
		runtime.GC()
		fullGC = append(fullGC, milliseconds(time.Since(begin)))
	}
	figures["gc-ms"] = quantile(fullGC, 0.5)
	return figures
}

// liveHeap runs the garbage collector and returns the bytes of live heap.
func liveHeap() int64 {
	runtime.GC()
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// quantile sorts values and returns the q-quantile. There must be at least one value.
func quantile(values []float64, q float64) float64 {
	slices.Sort(values)
	return values[min(int(q*float64(len(values))), len(values)-1)]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
