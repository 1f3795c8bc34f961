package benchmarks

import (
	"math/bits"
	"time"
)

// fine is the number of bits by which a histogram tells durations apart: to
// within three percent.
const fine = 5

// A histogram counts durations. The zero value is empty.
type histogram struct {
	counts [64 << fine]uint64
	n      uint64
	max    time.Duration
}

// record counts d, which is not negative.
func (h *histogram) record(d time.Duration) {
	h.counts[bin(d)]++
	h.n++
	h.max = max(h.max, d)
}

// quantile returns the duration below which the share q lies, rounded up.
func (h *histogram) quantile(q float64) time.Duration {
	below := uint64(q * float64(h.n))
	for i, c := range h.counts {
		if below < c {
			return min(binEnd(i), h.max)
		}
		below -= c
	}
	return h.max
}

// bin is d itself while that fits, then the highest bits of d, after their
// exponent.
func bin(d time.Duration) int {
	exponent := max(bits.Len64(uint64(d))-fine-1, 0)
	return exponent<<fine + int(d>>exponent)
}

// binEnd returns the longest duration that falls into bin i.
func binEnd(i int) time.Duration {
	exponent := max(i>>fine-1, 0)
	return time.Duration(i-exponent<<fine+1)<<exponent - 1
}
