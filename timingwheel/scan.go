package timingwheel

import (
	"math"

	"github.com/tickless/tickless/bucket"
)

// An Entry describes a value in the wheel.
type Entry[T any] struct {
	ID ID
	Expired[T]
}

// Each calls f for every entry, in no particular order. f must not call the wheel.
func (w *Wheel[T]) Each(f func(e Entry[T])) { w.Scan(0, math.MaxInt, f) }

// Scan calls f for the entries in the next n slots of the wheel's memory. Pass cursor 0
// to the first call, and the returned next to each further call, until more is false. The
// wheel may be used between two calls, so that a caller need not hold a lock for long.
//
// Scan visits an entry once if it is in the wheel from the first call to the last. f must
// not call the wheel. O(n + chunks).
func (w *Wheel[T]) Scan(cursor uint64, n int, f func(e Entry[T])) (next uint64, more bool) {
	for n > 0 {
		from, to := w.arena.Span(cursor, n)
		if cursor = to; from == to {
			break
		}
		n -= int(to - from)
		for ; from < to; from++ {
			if i := bucket.Index(from); w.arena.Live(i) {
				e := Entry[T]{w.arena.Ref(i), w.asExpired(i)}
				e.Value = w.arena.Value(i)
				f(e)
			}
		}
	}
	return cursor, cursor < w.arena.Slots()
}
