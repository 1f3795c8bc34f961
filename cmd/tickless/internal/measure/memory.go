package measure

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// LiveHeap runs the garbage collector, and returns the bytes of live heap and the
// duration of the collection.
func LiveHeap() (bytes int64, took time.Duration) {
	begin := time.Now()
	runtime.GC()
	took = time.Since(begin)
	return read("/gc/heap/live:bytes"), took
}

// Memory returns how many bytes the Go runtime has obtained from the system and not
// returned.
func Memory() int64 {
	return read("/memory/classes/total:bytes") - read("/memory/classes/heap/released:bytes")
}

func read(name string) int64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
