package measure

import (
	"runtime"
	"runtime/metrics"
	"time"
)

const (
	heapMetric     = "/memory/classes/heap/objects:bytes"
	stacksMetric   = "/memory/classes/heap/stacks:bytes"
	liveMetric     = "/gc/heap/live:bytes"
	totalMetric    = "/memory/classes/total:bytes"
	releasedMetric = "/memory/classes/heap/released:bytes"
)

// HeapInUse returns the bytes of the heap's objects, garbage included.
func HeapInUse() int64 { return sumOf(heapMetric) }

// LiveHeap collects the garbage, and returns the bytes that the collector found
// alive and how long it took.
func LiveHeap() (bytes int64, took time.Duration) {
	begin := time.Now()
	runtime.GC()
	took = time.Since(begin)
	return sumOf(liveMetric), took
}

// Memory returns the bytes that the runtime has of the system's memory.
func Memory() int64 { return sumOf(totalMetric) - sumOf(releasedMetric) }

// LiveMemory returns the bytes of the heap's live objects and of stacks. It
// collects the garbage before.
func LiveMemory() int64 {
	runtime.GC()
	runtime.GC() // the second frees what pools have held
	return sumOf(heapMetric, stacksMetric)
}

func sumOf(names ...string) (sum int64) {
	samples := make([]metrics.Sample, len(names))
	for i, name := range names {
		samples[i].Name = name
	}
	metrics.Read(samples)
	for _, s := range samples {
		sum += int64(s.Value.Uint64())
	}
	return sum
}
