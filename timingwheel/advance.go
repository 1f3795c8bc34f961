package timingwheel

import "github.com/tickless/tickless/bucket"

// Expire takes the entries out of a queued bucket, for [Wheel.Drain], and moves the wheel's
// clock to the bucket's expiration. The bucket is offered again when it gets its next entry.
// Expire is for wheels made with [WithQueue]. by is the expiration with which the bucket was
// offered; call Expire once the time has reached it. If the bucket is not queued, or is
// queued again to expire later, Expire does nothing.
//
// Expire buckets in the order of their expirations, and drain each before the next: then
// ticks come in order. If an owner expires the next bucket before a large one of a higher
// level is drained, so that entries that are due need not wait, entries of the large bucket
// may come after those of later ticks. If buckets are expired out of order, because an
// earlier one was queued after a later one was taken from the queue, ticks may come out of
// order and Next may be too early. In no case is an entry early, lost or handed out twice.
//
// The whole list moves in O(1) to the level's due list. Only Expire adds to that list: an
// entry that is placed again cannot land in the list that is being drained.
func (w *Wheel[T]) Expire(b bucket.Bucket, by int64) {
	if n, slot, ok := w.slotOf(b); ok && w.ticks.time(w.arena.Expiration(b)) <= by {
		w.expire(n, slot)
	}
}

// Discard ends the queueing of a bucket that all entries have left, before its expiration.
// The owner of the queue calls it while the bucket is in the queue, and takes the bucket out
// if Discard reports true. It reports false, and does nothing, if the bucket has entries or
// is not queued.
func (w *Wheel[T]) Discard(b bucket.Bucket) bool {
	n, slot, ok := w.slotOf(b)
	if !ok || !w.levels[n].isQueued(slot) || !w.arena.Empty(b) {
		return false
	}
	w.levels[n].clearQueued(slot)
	w.findNext()
	return true
}

// slotOf returns a bucket's level and slot.
func (w *Wheel[T]) slotOf(b bucket.Bucket) (n int, slot uint32, ok bool) {
	for n := range w.levels {
		// Below first the difference wraps to a large number.
		first := w.levels[n].first
		if slot := uint32(b - first); first != 0 && slot <= w.slotMask {
			return n, slot, true
		}
	}
	return 0, 0, false
}

func (w *Wheel[T]) expire(n int, slot uint32) {
	l := &w.levels[n]
	if !l.isQueued(slot) {
		return
	}
	l.clearQueued(slot)
	b := l.first + bucket.Bucket(slot)
	w.clock = max(w.clock, w.arena.Expiration(b))
	w.arena.MoveAll(l.due, b)
	w.findNext()
}

// Drain works through the entries of expired buckets, those of the lowest level
// first: it hands out those that are due at the wheel's clock and places the others
// again. It looks at no more than len(dst) entries, so that a lock around it is
// never held for long, puts those handed out into dst[:n] and reports whether more
// are left to look at; [Wheel.Draining] says of which level.
func (w *Wheel[T]) Drain(dst []Expired[T]) (n int, more bool) {
	n, _ = w.drain(dst, 0, len(dst))
	return n, w.isDraining()
}

// drain looks at no more than budget entries and puts those that are due into
// dst, from n on. It returns the new n and the budget that is left.
func (w *Wheel[T]) drain(dst []Expired[T], n, budget int) (int, int) {
	for level := range w.levels {
		due := w.levels[level].due
		for ; budget > 0; budget-- {
			i, ok := w.arena.Front(due)
			if !ok {
				break
			}
			w.arena.Unlink(i)
			if t := w.tickOf(i); t > w.clock {
				w.cascaded++
				w.place(i, t)
				continue
			}
			e := w.expired(i)
			e.Value = w.arena.Free(i)
			dst[n] = e
			n++
		}
	}
	return n, budget
}

// expired returns entry i as it is handed out, without its value.
func (w *Wheel[T]) expired(i bucket.Index) Expired[T] {
	e := Expired[T]{Deadline: w.arena.Deadline(i), Tag: w.arena.Tag(i)}
	e.Due = e.Deadline
	if w.arena.Grain(i) > 0 {
		e.Due = w.ticks.time(w.tickOf(i))
	}
	return e
}

// Advance moves the wheel to the time now, of which a negative one counts as 0, and
// hands out what has become due, in the order of ticks: into dst[:n], looking
// at no more than len(dst) entries. While it reports more, there is more to do
// for the same now: call it again. A now before the wheel's clock hands out
// nothing new. dst must not be empty. Advance is for wheels made without
// [WithQueue]. An entry whose rounded-up deadline is beyond math.MaxInt64 is never
// handed out.
func (w *Wheel[T]) Advance(now int64, dst []Expired[T]) (n int, more bool) {
	if len(dst) == 0 {
		panic("timingwheel: Advance: dst must not be empty")
	}
	w.mustBeMade()
	t := w.ticks.floor(max(now, 0))
	budget := len(dst)
	for {
		n, budget = w.drain(dst, n, budget)
		if w.isDraining() {
			return n, true
		}
		if !w.expireNext(t) {
			w.clock = max(w.clock, t)
			return n, false
		}
	}
}

// expireNext expires the queued bucket that expires first, the lowest level's
// if there are several, or reports false if none expires by tick t.
func (w *Wheel[T]) expireNext(t int64) bool {
	if w.next > t {
		return false
	}
	for n := range w.levels {
		l := &w.levels[n]
		slot := uint32(w.next>>(uint(n)*w.slotBits)) & w.slotMask
		if l.isQueued(slot) && w.arena.Expiration(l.first+bucket.Bucket(slot)) == w.next {
			w.expire(n, slot)
			return true
		}
	}
	return false
}
