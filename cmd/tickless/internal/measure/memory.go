package measure

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// LiveHeap runs the garbage collector. It returns the size of the live heap and the
// duration of the collection.
func LiveHeap() (bytes int64, took time.Duration) {
	begin := time.Now()
	runtime.GC()
	took = time.Since(begin)
	return readMetric("/gc/heap/live:bytes"), took
}

// Memory returns how many bytes of the system's memory the Go runtime holds.
func Memory() int64 {
	return readMetric("/memory/classes/total:bytes") - readMetric("/memory/classes/heap/released:bytes")
}

func readMetric(name string) int64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
