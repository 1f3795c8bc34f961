package timingwheel

import (
	"math"
	"math/bits"

	"github.com/tickless/tickless/bucket"
)

// place links entry i into the bucket for tick t, which is after the clock.
//
// The entry's level is the lowest whose span, counted from the level's own
// clock, holds t: the lowest n with t>>s - clock>>s < size, for s the bits of n
// levels. A distance of at least size^n cannot fit below level n, and one of
// less than size^(n+1) needs level n+1 only if the level's clock, rounded down
// to its slots, lags too far behind: so at most two levels need a look.
func (w *Wheel[T]) place(i bucket.Index, t int64) {
	n := uint(w.lowest[bits.Len64(uint64(t-w.clock))])
	s := n * w.slotBits
	if t>>s-w.clock>>s > int64(w.slotMask) {
		n++
		s += w.slotBits
	}
	for uint(len(w.levels)) <= n {
		w.addLevel()
	}
	l := &w.levels[n]
	slot := uint32(t>>s) & w.slotMask
	b := l.first + bucket.Bucket(slot)
	w.arena.SetPlace(i, uint32(n)<<w.slotBits|slot)
	w.arena.PushBack(b, i)
	if !l.isQueued(slot) {
		l.setQueued(slot)
		expiration := t >> s << s
		w.arena.SetExpiration(b, expiration)
		w.next = min(w.next, expiration)
		if w.offer != nil {
			w.offer(b, w.ticks.time(expiration))
		}
	}
}

func (w *Wheel[T]) addLevel() {
	size := int(w.slotMask) + 1
	w.levels = append(w.levels, level{
		first:  w.arena.NewBuckets(size),
		queued: make([]uint64, (size+63)/64),
	})
}

// bucketOf returns the bucket that entry i was last placed in.
func (w *Wheel[T]) bucketOf(i bucket.Index) bucket.Bucket {
	p := w.arena.Place(i)
	return w.levels[p>>w.slotBits].first + bucket.Bucket(p&w.slotMask)
}

// findNext recomputes next after a bucket has expired. O(levels * size / 64).
func (w *Wheel[T]) findNext() {
	w.next = math.MaxInt64
	for n := range w.levels {
		l := &w.levels[n]
		from := uint32(w.clock>>(uint(n)*w.slotBits)) & w.slotMask
		if slot, ok := l.nextQueued(from); ok {
			w.next = min(w.next, w.arena.Expiration(l.first+bucket.Bucket(slot)))
		}
	}
}
