package timingwheel

import (
	"math"
	"math/bits"

	"github.com/tickless/tickless/bucket"
)

// A tickConverter converts times into whole ticks by a multiplication instead of a
// division. BenchmarkTicks shows the saving.
//
// For 0 <= n < 2^63 and a divisor d, let l = ceil(log2 d) and m = floor(2^(63+l)/d) + 1.
// Then floor(n/d) is floor(m*n / 2^(63+l)). (Granlund and Montgomery, "Division by
// Invariant Integers using Multiplication", 1994, theorem 4.2.) magic is m, and shift is
// l-1.
type tickConverter struct {
	tickLength int64
	magic      uint64
	shift      uint
	// tickAtZero is the number of the tick at time 0.
	tickAtZero int64
}

func newTickConverter(tickLength, phase int64) tickConverter {
	l := uint(bits.Len64(uint64(tickLength - 1)))
	if l == 0 {
		return tickConverter{tickLength: 1, tickAtZero: phase}
	}
	// q is 2^(63+l)/tickLength. Div64 gets the dividend in two words: 2^(l-1), which is
	// less than tickLength, and 0.
	q, _ := bits.Div64(1<<(l-1), 0, uint64(tickLength))
	return tickConverter{tickLength: tickLength, magic: q + 1, shift: l - 1, tickAtZero: phase}
}

// floorTick returns the last tick that is not after time n, at most math.MaxInt64. n must
// not be negative.
func (t tickConverter) floorTick(n int64) int64 {
	if tick := t.wholeTicks(n) + t.tickAtZero; tick >= 0 {
		return tick
	}
	return math.MaxInt64
}

// wholeTicks returns the number of whole ticks in n. n must not be negative.
func (t tickConverter) wholeTicks(n int64) int64 {
	if t.magic == 0 {
		return n
	}
	hi, _ := bits.Mul64(t.magic, uint64(n))
	return int64(hi >> t.shift)
}

// ceilTick returns the first tick, at or after time n, that is a multiple of the grain's
// step, counted from time 0. A negative n counts as 0. The result is at most
// math.MaxInt64.
func (t tickConverter) ceilTick(n int64, grain uint) int64 {
	if n <= 0 {
		return t.tickAtZero
	}
	tick := uint64(t.wholeTicks(n-1)) + 1
	if grain > 0 {
		step := stepByGrain[grain&31]
		tick = (tick + step - 1) / step * step
	}
	if tick := int64(tick) + t.tickAtZero; tick >= 0 {
		return tick
	}
	return math.MaxInt64
}

// stepByGrain maps a grain to its step: a power of two up to 2^20, or three times a power
// of two up to 2^9. An entry with slack is due at a multiple of its step.
//
// Multiples of three save wake-ups. For example, in a window of 100 ticks the step is 96
// ticks. With powers of two alone it would be 64.
var stepByGrain = func() (s [32]uint64) {
	for exp := range maxExp + 1 {
		s[grainOfPow2(exp)] = 1 << exp
	}
	for exp := range maxThreeExp + 1 {
		s[grainOf3Pow2(exp)] = 3 << exp
	}
	s[bucket.MaxGrain+1] = 1 // not a grain of an entry
	return s
}()

const (
	maxExp      = bucket.MaxGrain - 1 - maxThreeExp
	maxThreeExp = 9
)

// grainOfPow2 returns the grain whose step is 2^exp, or 2^maxExp if exp is larger.
func grainOfPow2(exp int) uint { return uint(min(exp, maxExp) + min(exp, maxThreeExp+1)) }

// grainOf3Pow2 returns the grain whose step is 3*2^exp, or 3*2^maxThreeExp if exp is
// larger.
func grainOf3Pow2(exp int) uint { return uint(2*min(exp, maxThreeExp) + 1) }

// grainFor returns the grain for the window from time n to n+slack: that of the largest
// step with a multiple in the window. It returns 0 if the window has fewer than two
// ticks.
//
// The slack alone decides whether steps are powers of two, or three times powers of two.
// So entries with equal slack share more ticks.
func (t tickConverter) grainFor(n, slack int64) (grain uint) {
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
		return grainOf3Pow2(largestExponent((first-1)/3, last/3))
	}
	return grainOfPow2(largestExponent(first-1, last))
}

// largestExponent returns the largest k for which a multiple of 2^k is greater than low
// and at most high. low must be less than high.
func largestExponent(low, high int64) int {
	// At the highest bit that differs, high has a one and low has a zero. The multiple is
	// high with all lower bits cleared. Between low and high there is no multiple of a
	// larger power of two.
	return bits.Len64(uint64(low^high)) - 1
}

// timeOfTick returns the time of a tick that is not before time 0, at most math.MaxInt64.
func (t tickConverter) timeOfTick(tick int64) int64 {
	if tick == math.MaxInt64 {
		return math.MaxInt64
	}
	hi, lo := bits.Mul64(uint64(tick-t.tickAtZero), uint64(t.tickLength))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}
