package metric

import (
	"iter"
	"math"
	"time"
)

// Bounds are the upper limits of the buckets of exported histograms, in seconds.
var Bounds = []float64{
	1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05,
	0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
}

func toSeconds(d time.Duration) float64 { return float64(d) / float64(time.Second) }

// Counts converts the buckets of a timer.Histogram to buckets that end at Bounds. The
// last count is that of durations above all Bounds. Counts rounds durations up, as Quantile
// does, by at most 12.5 percent.
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
