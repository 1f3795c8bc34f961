package timingwheel

import (
	"math"
	"math/bits"

	"github.com/tickless/tickless/bucket"
)

// ticks converts times into whole ticks by a multiplication instead of a division.
// BenchmarkTicks shows the saving.
//
// For 0 <= n < 2^63 and a divisor d, let l = ceil(log2 d) and m = floor(2^(63+l)/d) + 1.
// Then floor(n/d) is floor(m*n / 2^(63+l)). This is theorem 4.2 of Granlund and
// Montgomery, "Division by Invariant Integers using Multiplication" (1994), for N = 63.
// magic is m, and shift is l-1.
type ticks struct {
	tickLength int64
	magic      uint64
	shift      uint
	// phase is the number of the tick at time 0.
	phase int64
}

func newTicks(tickLength, phase int64) ticks {
	l := uint(bits.Len64(uint64(tickLength - 1)))
	if l == 0 {
		return ticks{tickLength: 1, phase: phase}
	}
	// q is 2^(63+l)/tickLength. Div64 gets the dividend in two words: 2^(l-1), which is
	// less than tickLength, and 0.
	q, _ := bits.Div64(1<<(l-1), 0, uint64(tickLength))
	return ticks{tickLength: tickLength, magic: q + 1, shift: l - 1, phase: phase}
}

// floor returns the last tick that is not after time n, at most math.MaxInt64. n must not
// be negative.
func (t ticks) floor(n int64) int64 {
	if tick := t.wholeTicks(n) + t.phase; tick >= 0 {
		return tick
	}
	return math.MaxInt64
}

// wholeTicks returns the number of whole ticks in n. n must not be negative.
func (t ticks) wholeTicks(n int64) int64 {
	if t.magic == 0 {
		return n
	}
	hi, _ := bits.Mul64(t.magic, uint64(n))
	return int64(hi >> t.shift)
}

// ceilTo returns the first tick that is not before time n and is a multiple of the
// grain's step, counted from time 0. A negative n counts as 0. The result is at most
// math.MaxInt64.
func (t ticks) ceilTo(n int64, grain uint) int64 {
	if n <= 0 {
		return t.phase
	}
	tick := uint64(t.wholeTicks(n-1)) + 1
	if grain > 0 {
		step := steps[grain&31]
		tick = (tick + step - 1) / step * step
	}
	if tick := int64(tick) + t.phase; tick >= 0 {
		return tick
	}
	return math.MaxInt64
}

// steps maps a grain to its step. An entry with slack is due at a tick that is a multiple
// of the step. Steps are the powers of two up to 2^20, and three times the powers of two
// up to 2^9.
//
// Multiples of three save wake-ups: in a window of 100 ticks (10 ms with a tick of 0.1
// ms) the step is 96 ticks. With powers of two alone it would be 64, and there would be
// 50 percent more wake-ups. Larger windows have few wake-ups anyway.
var steps = func() (s [32]uint64) {
	for exp := range maxExp + 1 {
		s[grainOf(exp)] = 1 << exp
	}
	for exp := range maxThreeExp + 1 {
		s[grainOfThree(exp)] = 3 << exp
	}
	s[bucket.MaxGrain+1] = 1 // not a grain of an entry
	return s
}()

const (
	maxExp      = bucket.MaxGrain - 1 - maxThreeExp
	maxThreeExp = 9
)

// grainOf returns the grain whose step is 2^exp. If exp is larger than maxExp, maxExp
// counts.
func grainOf(exp int) uint { return uint(min(exp, maxExp) + min(exp, maxThreeExp+1)) }

// grainOfThree returns the grain whose step is 3*2^exp. If exp is larger than
// maxThreeExp, maxThreeExp counts.
func grainOfThree(exp int) uint { return uint(2*min(exp, maxThreeExp) + 1) }

// grainFor returns the grain for the window from time n to n+slack. It chooses the
// largest step that has a multiple in the window, counted in ticks from time 0. That
// multiple is ceilTo(n, grain). grainFor returns 0 if the window has fewer than two
// ticks.
//
// The length of the window alone decides between powers of two and three times powers of
// two. So windows of one length share few ticks: each of their steps is a multiple of the
// smaller ones.
func (t ticks) grainFor(n, slack int64) (grain uint) {
	if slack <= 0 || n <= 0 {
		return 0
	}
	slack = min(slack, math.MaxInt64-n)
	first, last := t.wholeTicks(n-1)+1, t.wholeTicks(n+slack)
	if last <= first {
		return 0
	}
	windowTicks := uint64(t.wholeTicks(slack))
	if k := bits.Len64(windowTicks); k >= 2 && k <= maxThreeExp+2 && windowTicks>>(k-2) == 3 {
		return grainOfThree(exponent((first-1)/3, last/3))
	}
	return grainOf(exponent(first-1, last))
}

// exponent returns the largest k for which a multiple of 2^k is after before and not
// after last. before must be less than last.
func exponent(before, last int64) int {
	// In the highest bit that differs, last has a one and before has a zero. Clear all
	// lower bits of last: the result is after before, and no multiple of a larger power
	// of two lies in between.
	return bits.Len64(uint64(before^last)) - 1
}

// time returns the time of a tick that is not before time 0, at most math.MaxInt64.
func (t ticks) time(tick int64) int64 {
	if tick == math.MaxInt64 {
		return math.MaxInt64
	}
	hi, lo := bits.Mul64(uint64(tick-t.phase), uint64(t.tickLength))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}
