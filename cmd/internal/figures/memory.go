package figures

import (
	"runtime"
	"runtime/metrics"
)

// LiveHeap runs the garbage collector and returns the size of the live heap.
func LiveHeap() (bytes int64) {
	runtime.GC()
	return readMetric("/gc/heap/live:bytes")
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
