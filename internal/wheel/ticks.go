package wheel

import (
	"math"
	"math/bits"

	"github.com/tickless/tickless/internal/slab"
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

// floor returns the last tick that is not after time n, n >= 0. It saturates.
func (t ticks) floor(n int64) int64 {
	if tick := t.whole(n) + t.phase; tick >= 0 {
		return tick
	}
	return math.MaxInt64
}

// whole returns how many whole ticks are in n, n >= 0.
func (t ticks) whole(n int64) int64 {
	if t.magic == 0 {
		return n
	}
	hi, _ := bits.Mul64(t.magic, uint64(n))
	return int64(hi >> t.shift)
}

// ceil returns the first tick that is not before time n. A negative time counts
// as 0. It saturates.
func (t ticks) ceil(n int64) int64 { return t.ceilTo(n, 0) }

// ceilTo returns the first tick that is not before time n and is a multiple of
// 2^grain, counted from time 0.
func (t ticks) ceilTo(n int64, grain uint) int64 {
	if n <= 0 {
		return t.phase
	}
	mask := uint64(1)<<(grain&63) - 1
	tick := int64((uint64(t.whole(n-1))+1+mask)&^mask) + t.phase
	if tick >= 0 {
		return tick
	}
	return math.MaxInt64
}

// within returns the grain of a window: log2 of the largest power of two of which a
// multiple, in ticks from time 0, lies from time n to slack after it. It is 0 if no
// tick does. The first such multiple is ceilTo(n, grain).
func (t ticks) within(n, slack int64) (grain uint) {
	if slack <= 0 || n <= 0 {
		return 0
	}
	first, last := t.whole(n-1)+1, t.whole(n+min(slack, math.MaxInt64-n))
	if last <= first {
		return 0
	}
	// In the highest bit in which they differ, last has a one and first-1 a zero: so
	// last with all lower bits cleared is after first-1, and no multiple of a larger
	// power lies in between.
	return min(uint(bits.Len64(uint64((first-1)^last))-1), slab.MaxGrain)
}

// time returns the time of a tick, which is not before time 0, or math.MaxInt64 if
// that is beyond it.
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
