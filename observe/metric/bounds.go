package metric

import (
	"iter"
	"math"
	"time"
)

// Bounds are the upper limits of the buckets of exported histograms, in seconds. They are
// 2^n-1 nanoseconds, from 16 µs to 69 s. Each is also a limit of a bucket of a
// timer.Histogram, so the exported counts are exact.
var Bounds = func() (bounds []float64) {
	for n := 14; n <= 36; n++ {
		bounds = append(bounds, seconds(1<<n-1))
	}
	return bounds
}()

func seconds(d time.Duration) float64 { return float64(d) / float64(time.Second) }

// Counts converts the buckets of a timer.Histogram. counts[i] is the number of durations
// up to Bounds[i] and above Bounds[i-1]. The last count is that of durations above all
// Bounds.
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

// Scale is the scale of exponential histograms: the base is 2^(2^-Scale). There are eight
// buckets from a duration to its double, as in a timer.Histogram.
const Scale = 3

// ZeroThreshold is the longest duration in Exponential.Zero, in seconds.
const ZeroThreshold = 1e-9

// Exponentials converts the buckets of a timer.Histogram to exponential buckets. For each
// duration, it takes the upper limit of its bucket instead. So a quantile of the result
// is never below the true quantile, and at most 23 percent above it.
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
