package timingwheel

import (
	"math"
	"math/bits"
)

// ticks converts times into whole ticks by a multiplication instead of a
// division: for 0 <= n < 2^63 and a divisor d, with l = ceil(log2 d) and
// m = floor(2^(63+l)/d) + 1, floor(n/d) is floor(m*n / 2^(63+l)). This is
// theorem 4.2 of Granlund and Montgomery, "Division by Invariant Integers using
// Multiplication" (1994), for N = 63. BenchmarkTicks shows what it saves.
type ticks struct {
	unit  int64
	magic uint64
	shift uint
}

func newTicks(unit int64) ticks {
	l := uint(bits.Len64(uint64(unit - 1)))
	if l == 0 {
		return ticks{unit: 1}
	}
	// 2^(63+l)/unit, whose high word 2^(l-1) is less than unit.
	q, _ := bits.Div64(1<<(l-1), 0, uint64(unit))
	return ticks{unit: unit, magic: q + 1, shift: l - 1}
}

// floor returns the last tick that is not after time n, n >= 0.
func (t ticks) floor(n int64) int64 {
	if t.magic == 0 {
		return n
	}
	hi, _ := bits.Mul64(t.magic, uint64(n))
	return int64(hi >> t.shift)
}

// ceil returns the first tick that is not before time n. A negative time counts
// as 0.
func (t ticks) ceil(n int64) int64 {
	if n <= 0 {
		return 0
	}
	return t.floor(n-1) + 1
}

// time returns the time of a tick, or math.MaxInt64 if that is beyond it.
func (t ticks) time(tick int64) int64 {
	hi, lo := bits.Mul64(uint64(tick), uint64(t.unit))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}
