package timingwheel

import (
	"math"
	"math/bits"

	"github.com/tickless/tickless/bucket"
)

// ticks converts times into whole ticks by a multiplication instead of a division. For 0
// <= n < 2^63 and a divisor d, let l = ceil(log2 d) and m = floor(2^(63+l)/d) + 1. Then
// floor(n/d) is floor(m*n / 2^(63+l)). This is theorem 4.2 of Granlund and Montgomery,
// "Division by Invariant Integers using Multiplication" (1994), for N = 63.
// BenchmarkTicks shows what it saves.
type ticks struct {
	unit  int64
	magic uint64
	shift uint
	// phase is the number of the tick at time 0.
	phase int64
}

func newTicks(unit, phase int64) ticks {
	l := uint(bits.Len64(uint64(unit - 1)))
	if l == 0 {
		return ticks{unit: 1, phase: phase}
	}
	// 2^(63+l)/unit, whose high word 2^(l-1) is less than unit.
	q, _ := bits.Div64(1<<(l-1), 0, uint64(unit))
	return ticks{unit: unit, magic: q + 1, shift: l - 1, phase: phase}
}

// floor returns the last tick that is not after time n. n must not be negative. The
// result saturates.
func (t ticks) floor(n int64) int64 {
	if tick := t.whole(n) + t.phase; tick >= 0 {
		return tick
	}
	return math.MaxInt64
}

// whole returns the number of whole ticks in n. n must not be negative.
func (t ticks) whole(n int64) int64 {
	if t.magic == 0 {
		return n
	}
	hi, _ := bits.Mul64(t.magic, uint64(n))
	return int64(hi >> t.shift)
}

// ceilTo returns the first tick that is not before time n and is a multiple of the
// grain's step, counted from time 0. A negative n counts as 0. The result saturates.
func (t ticks) ceilTo(n int64, grain uint) int64 {
	if n <= 0 {
		return t.phase
	}
	tick := uint64(t.whole(n-1)) + 1
	if grain > 0 {
		step := steps[grain&31]
		tick = (tick + step - 1) / step * step
	}
	if tick := int64(tick) + t.phase; tick >= 0 {
		return tick
	}
	return math.MaxInt64
}

// steps maps a grain to its step: the tick of an entry with slack is a multiple of the
// step. Steps are the powers of two up to 2^20, and three times the powers of two up to
// 2^9. A window of a hundred ticks (10 ms with a tick of 0.1 ms) then has a step of 96
// ticks. With powers of two alone the step would be 64, and wake-ups half as many again.
// Larger windows have few wake-ups anyway, and a grain has only five bits.
var steps = func() (s [32]uint64) {
	for exp := range maxExp + 1 {
		s[grainOf(exp)] = 1 << exp
	}
	for exp := range maxThreeExp + 1 {
		s[grainOfThree(exp)] = 3 << exp
	}
	s[bucket.MaxGrain+1] = 1 // no grain
	return s
}()

const (
	maxExp      = bucket.MaxGrain - 1 - maxThreeExp
	maxThreeExp = 9
)

// grainOf returns the grain of step 2^exp, or of 2^maxExp if exp is larger.
func grainOf(exp int) uint { return uint(min(exp, maxExp) + min(exp, maxThreeExp+1)) }

// grainOfThree returns the grain of step 3*2^exp, or of 3*2^maxThreeExp if exp is larger.
func grainOfThree(exp int) uint { return uint(2*min(exp, maxThreeExp) + 1) }

// within returns the grain for the window from time n to n+slack: the one with the
// largest step that has a multiple in the window, counted in ticks from time 0. It
// returns 0 if no tick lies in the window. The multiple is ceilTo(n, grain). Only the
// length of the window decides between powers of two and three times powers of two. So
// windows of one length share few ticks: each step is a multiple of the smaller ones.
func (t ticks) within(n, slack int64) (grain uint) {
	if slack <= 0 || n <= 0 {
		return 0
	}
	slack = min(slack, math.MaxInt64-n)
	first, last := t.whole(n-1)+1, t.whole(n+slack)
	if last <= first {
		return 0
	}
	length := uint64(t.whole(slack))
	if k := bits.Len64(length); k >= 2 && k <= maxThreeExp+2 && length>>(k-2) == 3 {
		return grainOfThree(exponent((first-1)/3, last/3))
	}
	return grainOf(exponent(first-1, last))
}

// exponent returns log2 of the largest power of two that has a multiple after before and
// not after last. before must be less than last.
func exponent(before, last int64) int {
	// In the highest bit in which the two differ, last has a one and before a zero. So
	// last with all lower bits cleared is after before, and no multiple of a larger power
	// of two lies in between.
	return bits.Len64(uint64(before^last)) - 1
}

// time returns the time of a tick that is not before time 0. It saturates at
// math.MaxInt64.
func (t ticks) time(tick int64) int64 {
	if tick == math.MaxInt64 {
		return math.MaxInt64
	}
	hi, lo := bits.Mul64(uint64(tick-t.phase), uint64(t.unit))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}
