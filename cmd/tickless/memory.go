package main

import (
	"runtime"
	"runtime/metrics"
)

const (
	heapMetric   = "/memory/classes/heap/objects:bytes"
	stacksMetric = "/memory/classes/heap/stacks:bytes"
)

// heapInUse returns the bytes of the heap's objects, garbage included.
func heapInUse() int64 { return sumOfMetrics(heapMetric) }

// liveMemory returns the bytes of the heap's live objects and of stacks. It
// collects the garbage before.
func liveMemory() int64 {
	runtime.GC()
	runtime.GC() // the second frees what pools have held
	return sumOfMetrics(heapMetric, stacksMetric)
}

func sumOfMetrics(names ...string) (sum int64) {
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
