package timingwheel

import (
	"math"

	"github.com/tickless/tickless/bucket"
)

// An Entry is what a wheel keeps of one value.
type Entry[T any] struct {
	ID ID
	Expired[T]
}

// at returns the entry in a place of the wheel's memory, or false if there is none.
func (w *Wheel[T]) at(place uint64) (e Entry[T], ok bool) {
	i := bucket.Index(place)
	if !w.arena.Live(i) {
		return e, false
	}
	e = Entry[T]{w.arena.Ref(i), w.expired(i)}
	e.Value = w.arena.Value(i)
	return e, true
}

// Each calls f for every entry, in no order. f must not call the wheel.
func (w *Wheel[T]) Each(f func(e Entry[T])) { w.Scan(0, math.MaxInt, f) }

// Scan calls f for the entries in n places, from one on, and returns the place to go
// on from, or false if there are no more. The wheel may be used between two calls, so
// that a caller with a lock need not hold it for long: an entry that is there all the
// while is met once, one that comes or goes may be missed. f must not call the wheel.
// O(n + levels + memory given back).
func (w *Wheel[T]) Scan(place uint64, n int, f func(e Entry[T])) (next uint64, more bool) {
	for n > 0 {
		from, to := w.arena.Span(place, n)
		if place = to; from == to {
			break
		}
		n -= int(to - from)
		for ; from < to; from++ {
			if e, ok := w.at(from); ok {
				f(e)
			}
		}
	}
	return place, place < w.arena.Slots()
}

// Sweep removes those of the entries in n places, from one on, that have a tag and for
// whose payloads dead reports true: for an owner whose entries may lose their meaning
// without a call of Remove. It returns what Scan does. dead must not call the wheel.
// O(n + memory given back).
func (w *Wheel[T]) Sweep(place uint64, n int, tag uint8, dead func(v T) bool) (next uint64, more bool) {
	for n > 0 {
		from, to := w.arena.Span(place, n)
		if place = to; from == to {
			break
		}
		n -= int(to - from)
		for ; from < to; from++ {
			i := bucket.Index(from)
			if w.arena.Live(i) && w.arena.Tag(i) == tag && dead(w.arena.Value(i)) {
				w.arena.Unlink(i)
				w.arena.Free(i)
			}
		}
	}
	return place, place < w.arena.Slots()
}
