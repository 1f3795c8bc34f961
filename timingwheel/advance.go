package timingwheel

import "github.com/tickless/tickless/bucket"

// Expire takes the entries out of bucket b, for [Wheel.Drain] to hand out, and moves the
// wheel's clock to b's expiration. It is for wheels made with [WithQueue]. offered is the
// expiration that the wheel passed to WithQueue's function together with b. Call Expire
// at time offered or later. If b is not queued, or is queued again for a later time,
// Expire does nothing. O(1).
//
// Call Expire in the order of expirations, and Drain after each Expire. Otherwise ticks
// may come out of order, and Next may be too early. Even then no entry is early, lost or
// handed out twice.
func (w *Wheel[T]) Expire(b bucket.Bucket, offered int64) {
	if n, slot, ok := w.levelAndSlotOf(b); ok && w.converter.timeOfTick(w.arena.Expiration(b)) <= offered {
		w.expireBucket(n, slot)
	}
}

// Discard withdraws an empty bucket that the wheel has offered: see [WithQueue]. If
// Discard reports true, the caller must remove the bucket from its queue. If the bucket
// has entries or is not queued, Discard does nothing and reports false.
func (w *Wheel[T]) Discard(b bucket.Bucket) bool {
	n, slot, ok := w.levelAndSlotOf(b)
	if !ok || !w.levels[n].isQueued(slot) || !w.arena.Empty(b) {
		return false
	}
	w.levels[n].clearQueued(slot)
	w.updateNextExpiration()
	return true
}

// levelAndSlotOf returns the level and slot of a bucket. It reports false if no slot has
// the bucket.
func (w *Wheel[T]) levelAndSlotOf(b bucket.Bucket) (n int, slot uint32, ok bool) {
	for n := range w.levels {
		// The buckets of a level have consecutive numbers. If b is less than the first,
		// the difference wraps to a large number.
		firstNumber := w.levels[n].firstBucket
		if slot := uint32(b - firstNumber); firstNumber != 0 && slot <= w.slotMask {
			return n, slot, true
		}
	}
	return 0, 0, false
}

func (w *Wheel[T]) expireBucket(n int, slot uint32) {
	l := &w.levels[n]
	if !l.isQueued(slot) {
		return
	}
	l.clearQueued(slot)
	b := l.firstBucket + bucket.Bucket(slot)
	w.clockTick = max(w.clockTick, w.arena.Expiration(b))
	w.arena.MoveAll(l.dueList, b)
	w.updateNextExpiration()
}

// Drain goes through the entries of expired buckets, lowest level first. It hands out due
// entries, in dst[:n], and moves the others to lower levels. It processes at most
// len(dst) entries, so that a caller need not hold a lock for long. more reports whether
// entries remain.
func (w *Wheel[T]) Drain(dst []Expired[T]) (n int, more bool) {
	n, _ = w.drain(dst, 0, len(dst))
	return n, w.isDraining()
}

// drain processes at most entryBudget entries and appends those that are due to dst[:n].
// It returns the new n and the remaining entryBudget.
func (w *Wheel[T]) drain(dst []Expired[T], n, entryBudget int) (int, int) {
	for level := range w.levels {
		dueList := w.levels[level].dueList
		for ; entryBudget > 0; entryBudget-- {
			i, ok := w.arena.Front(dueList)
			if !ok {
				break
			}
			w.arena.Unlink(i)
			if t := w.tickOf(i); t > w.clockTick {
				w.cascadeCount++
				w.insertEntry(i, t)
				continue
			}
			e := w.asExpired(i)
			e.Value = w.arena.Free(i)
			dst[n] = e
			n++
		}
	}
	return n, entryBudget
}

// asExpired returns entry i as an Expired without its Value.
func (w *Wheel[T]) asExpired(i bucket.Index) Expired[T] {
	e := Expired[T]{Deadline: w.arena.Deadline(i), Tag: w.arena.Tag(i)}
	e.Due = e.Deadline
	if w.arena.Grain(i) > 0 {
		e.Due = w.converter.timeOfTick(w.tickOf(i))
	}
	return e
}

// Advance moves the wheel to time now. It hands out the entries that have become due, in
// the order of ticks, in dst[:n]. Advance is for wheels made without [WithQueue].
//
// Advance processes at most len(dst) entries; dst must not be empty. If more is true,
// call Advance again with the same now. An entry whose deadline rounds up beyond
// math.MaxInt64 is never handed out.
func (w *Wheel[T]) Advance(now int64, dst []Expired[T]) (n int, more bool) {
	if len(dst) == 0 {
		panic("timingwheel: Advance: dst must not be empty")
	}
	w.mustBeMade()
	t := w.converter.floorTick(max(now, 0))
	entryBudget := len(dst)
	for {
		n, entryBudget = w.drain(dst, n, entryBudget)
		if w.isDraining() {
			return n, true
		}
		if !w.expireNextBucket(t) {
			w.clockTick = max(w.clockTick, t)
			return n, false
		}
	}
}

// expireNextBucket expires the queued bucket with the earliest expiration or, of several
// such buckets, that of the lowest level. It reports false if none expires by tick t.
func (w *Wheel[T]) expireNextBucket(t int64) bool {
	if w.nextExpiration > t {
		return false
	}
	for n := range w.levels {
		if slot, expiration, ok := w.nextBucket(n); ok && expiration == w.nextExpiration {
			w.expireBucket(n, slot)
			return true
		}
	}
	return false
}
