package figures

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// LiveHeap runs the garbage collector. It returns the size of the live heap and the
// duration of the collection.
func LiveHeap() (bytes int64, gcTime time.Duration) {
	start := time.Now()
	runtime.GC()
	gcTime = time.Since(start)
	return readMetric("/gc/heap/live:bytes"), gcTime
}

// RuntimeMemory returns how many bytes of the system's memory the Go runtime holds.
func RuntimeMemory() int64 {
	return readMetric("/memory/classes/total:bytes") - readMetric("/memory/classes/heap/released:bytes")
}

func readMetric(name string) int64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
