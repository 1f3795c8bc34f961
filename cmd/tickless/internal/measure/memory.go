package measure

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// LiveHeap collects the garbage, and returns the bytes that the collector found
// alive and how long it took.
func LiveHeap() (bytes int64, took time.Duration) {
	begin := time.Now()
	runtime.GC()
	took = time.Since(begin)
	return read("/gc/heap/live:bytes"), took
}

// Memory returns the bytes that the runtime has of the system's memory.
func Memory() int64 {
	return read("/memory/classes/total:bytes") - read("/memory/classes/heap/released:bytes")
}

func read(name string) int64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
