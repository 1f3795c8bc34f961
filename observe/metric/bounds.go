package metric

import (
	"iter"
	"math"
	"time"
)

// Bounds are the upper limits of the buckets of exported histograms, in seconds: powers
// of two of a nanosecond, less one, from 16 µs to 69 s. At each limit a bucket of a
// timer.Histogram ends, so the exported counts are exact.
var Bounds = func() (bounds []float64) {
	for n := 14; n <= 36; n++ {
		bounds = append(bounds, seconds(1<<n-1))
	}
	return bounds
}()

func seconds(d time.Duration) float64 { return float64(d) / float64(time.Second) }

// Counts converts the buckets of a timer.Histogram. It returns the number of durations in
// each exported bucket: up to the first of Bounds, between each two, and above the last.
func Counts(buckets iter.Seq2[time.Duration, uint64]) []uint64 {
	counts := make([]uint64, len(Bounds)+1)
	i := 0
	for limit, n := range buckets {
		for i < len(Bounds) && seconds(limit) > Bounds[i] {
			i++
		}
		counts[i] += n
	}
	return counts
}

// Exponential contains the buckets of an exponential histogram. The bucket with index i
// counts the durations above base^i seconds and up to base^(i+1).
type Exponential struct {
	// Zero is the number of durations of at most one nanosecond.
	Zero uint64
	// Offset is the index of the first bucket in Counts.
	Offset int
	Counts []uint64
}

// Scale is the scale of exponential histograms: their base is 2^(2^-Scale). Like a
// timer.Histogram they have eight buckets for each doubling.
const Scale = 3

// ZeroThreshold is the longest duration in Exponential.Zero, in seconds.
const ZeroThreshold = 1e-9

// Exponentials converts the buckets of a timer.Histogram to exponential ones. It counts
// all durations of a bucket as the longest of them: a quantile of the result is never
// less than the true one, and at most 23 percent above it.
func Exponentials(buckets iter.Seq2[time.Duration, uint64]) (e Exponential) {
	for limit, n := range buckets {
		if limit <= 1 {
			e.Zero += n
			continue
		}
		i := int(math.Ceil(math.Log2(seconds(limit))*(1<<Scale))) - 1
		if e.Counts == nil {
			e.Offset = i
		}
		for len(e.Counts) <= i-e.Offset {
			e.Counts = append(e.Counts, 0)
		}
		e.Counts[i-e.Offset] += n
	}
	return e
}
