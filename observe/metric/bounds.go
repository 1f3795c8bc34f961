package metric

import (
	"iter"
	"math"
	"time"
)

// Bounds are the upper limits of the buckets of exported histograms, in seconds. Each is
// also the limit of a bucket of timer.Histogram, so counts are exact.
var Bounds = func() (bounds []float64) {
	for n := 14; n <= 36; n++ {
		bounds = append(bounds, toSeconds(1<<n-1))
	}
	return bounds
}()

func toSeconds(d time.Duration) float64 { return float64(d) / float64(time.Second) }

// Counts converts the buckets of a timer.Histogram to buckets that end at Bounds. The
// last count is that of durations above all Bounds.
func Counts(buckets iter.Seq2[time.Duration, uint64]) []uint64 {
	counts := make([]uint64, len(Bounds)+1)
	i := 0
	for limit, n := range buckets {
		for i < len(Bounds) && toSeconds(limit) > Bounds[i] {
			i++
		}
		counts[i] += n
	}
	return counts
}

// Exponential contains the buckets of an exponential histogram. The bucket with index i
// counts durations from base^i to base^(i+1) seconds: see Scale.
type Exponential struct {
	// Zero is the number of durations of at most one nanosecond.
	Zero uint64
	// Offset is the index of the first bucket in Counts.
	Offset int
	Counts []uint64
}

// Scale is the scale of exponential histograms: eight buckets from a duration to its
// double, as in a timer.Histogram. The base is 2^(2^-Scale).
const Scale = 3

// ZeroThreshold is the longest duration in Exponential.Zero, in seconds.
const ZeroThreshold = 1e-9

// Exponentials converts the buckets of a timer.Histogram to exponential buckets. It
// rounds durations up, so quantiles are too high by up to 23 percent, and never too low.
func Exponentials(buckets iter.Seq2[time.Duration, uint64]) (e Exponential) {
	for limit, n := range buckets {
		if limit <= 1 {
			e.Zero += n
			continue
		}
		i := int(math.Ceil(math.Log2(toSeconds(limit))*(1<<Scale))) - 1
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
