package timer

import (
	"iter"
	"math"
	"math/bits"
	"time"
)

// A Histogram counts durations. Its buckets are an eighth of a power of
// two wide, so that a quantile is at most 12.5 percent above the true one.
type Histogram struct {
	max    time.Duration
	counts [histogramBuckets]uint64
	total  uint64
	sum    float64
}

const (
	histogramSub     = 3
	histogramBuckets = (64 - histogramSub) << histogramSub
)

// Record counts a duration; a negative one counts as zero. It is for histograms of
// one's own, and must not be called by several goroutines at a time.
func (h *Histogram) Record(d time.Duration) { h.recordMany(d, 1) }

func (h *Histogram) recordMany(d time.Duration, n uint64) {
	d = max(d, 0)
	h.max = max(h.max, d)
	h.total += n
	h.sum += float64(d) * float64(n)
	h.counts[histogramBucket(d)] += n
}

// histogramBucket maps durations below 8 ns to themselves, and others by their
// highest bit and the three bits below it.
func histogramBucket(d time.Duration) int {
	u := uint64(d)
	shift := max(bits.Len64(u)-histogramSub-1, 0)
	return shift<<histogramSub + int(u>>shift)
}

// histogramLimit is the largest duration in a bucket.
func histogramLimit(bucket int) time.Duration {
	if bucket < 2<<histogramSub {
		return time.Duration(bucket)
	}
	shift := bucket>>histogramSub - 1
	top := uint64(bucket&(1<<histogramSub-1) + 1<<histogramSub)
	return time.Duration((top+1)<<shift - 1)
}

func (h *Histogram) merge(o *Histogram) {
	h.max = max(h.max, o.max)
	h.total += o.total
	h.sum += o.sum
	for i, n := range o.counts {
		h.counts[i] += n
	}
}

// Count returns the number of durations recorded.
func (h Histogram) Count() uint64 { return h.total }

// Max returns the largest duration, zero if there is none.
func (h Histogram) Max() time.Duration { return h.max }

// Mean returns the average, zero if there is none.
func (h Histogram) Mean() time.Duration {
	if h.total == 0 {
		return 0
	}
	return time.Duration(h.sum / float64(h.total))
}

// Quantile returns a duration that a share q of all durations does not exceed, or
// zero if there are none. A q below 0 or NaN counts as 0, one above 1 as 1.
func (h Histogram) Quantile(q float64) time.Duration {
	rank := uint64(1)
	if q > 0 {
		rank = max(rank, uint64(math.Ceil(min(q, 1)*float64(h.total))))
	}
	var seen uint64
	for i, n := range h.counts {
		if seen += n; n > 0 && seen >= rank {
			return min(histogramLimit(i), h.max)
		}
	}
	return h.max
}

// Sum returns the sum of all durations, in seconds.
func (h Histogram) Sum() float64 { return h.sum / float64(time.Second) }

// Buckets returns the buckets that are not empty, in ascending order: the largest
// duration that belongs in each, and how many there are. For Count and these to agree
// they have to be of one copy of the Histogram, as Stats returns it.
func (h Histogram) Buckets() iter.Seq2[time.Duration, uint64] {
	return func(yield func(time.Duration, uint64) bool) {
		for i, n := range h.counts {
			if n > 0 && !yield(histogramLimit(i), n) {
				return
			}
		}
	}
}
