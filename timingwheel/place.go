package timingwheel

import (
	"math"
	"math/bits"

	"github.com/tickless/tickless/bucket"
)

// level is one wheel of the hierarchy: a ring of buckets, one for each slot.
//
// A bucket is queued from its first entry until it expires, even if its entries are
// removed. It expires when its first entry is due or earlier: see expireNoLaterThan.
//
// Unless Expire is called out of order, the clock does not pass a queued bucket. So each
// queued slot stands for one range of ticks, less than a turn after the clock. The
// clock's own slot gets no entries.
type level struct {
	// firstBucket is the bucket of slot 0. The buckets of the other slots follow it. It
	// is zero until the level gets its first entry.
	firstBucket bucket.Bucket
	// dueList contains the entries of expired buckets of this level, until they are
	// handed out or moved down. Nothing else is added to it.
	dueList bucket.Bucket
	// queuedBits has a bit for each slot. It is set while the slot's bucket is queued.
	queuedBits []uint64
}

func (l *level) isQueued(slot uint32) bool { return l.queuedBits[slot>>6]&(1<<(slot&63)) != 0 }
func (l *level) setQueued(slot uint32)     { l.queuedBits[slot>>6] |= 1 << (slot & 63) }
func (l *level) clearQueued(slot uint32)   { l.queuedBits[slot>>6] &^= 1 << (slot & 63) }

// nextQueuedSlot returns the first queued slot at or after from, in ring order. It
// reports false if no slot is queued.
func (l *level) nextQueuedSlot(from uint32) (uint32, bool) {
	w := int(from >> 6)
	if b := l.queuedBits[w] >> (from & 63); b != 0 {
		return from + uint32(bits.TrailingZeros64(b)), true
	}
	// Search the other words of the ring, and at the end the first word again.
	for range l.queuedBits {
		w++
		if w == len(l.queuedBits) {
			w = 0
		}
		if b := l.queuedBits[w]; b != 0 {
			return uint32(w<<6 + bits.TrailingZeros64(b)), true
		}
	}
	return 0, false
}

// queueBucketForTick returns the bucket for tick t, which must be after the clock, and
// the bucket's place (its level and slot). It queues the bucket, so the caller must put
// an entry into it.
//
// The level is the lowest n with t>>s - clock>>s < size, where s is n*slotBits.
func (w *Wheel[T]) queueBucketForTick(t int64) (b bucket.Bucket, place uint32) {
	n := uint(w.firstLevelByBits[bits.Len64(uint64(t-w.clockTick))&63])
	s := n * w.slotBits & 63
	if t>>s-w.clockTick>>s > int64(w.slotMask) {
		n++
		s = (s + w.slotBits) & 63
	}
	if n >= uint(len(w.levels)) {
		w.addLevels(n)
	}
	l := &w.levels[n]
	slot := uint32(t>>s) & w.slotMask
	b = l.firstBucket + bucket.Bucket(slot)
	place = uint32(n)<<w.slotBits | slot
	if !l.isQueued(slot) {
		if l.firstBucket == 0 {
			l.firstBucket = w.arena.NewBuckets(int(w.slotMask) + 1)
			b = l.firstBucket + bucket.Bucket(slot)
		}
		l.setQueued(slot)
		w.arena.SetLoad(b, 1)
		w.setExpirationAndOffer(b, place, t)
	} else if n > 0 {
		w.expireNoLaterThan(b, place, t, n)
	}
	return b, place
}

// A bucket is large once largeBucketLoad entries were placed in it. Moving its entries
// down takes long, and what is due should not wait meanwhile. So a large bucket expires
// before its slot begins: see leadOf. Entries that are then too far away for the lower
// level go back into the bucket, which expires again when the slot begins.
const largeBucketLoad = 256

// expireNoLaterThan makes queued bucket b of level n expire no later than t, the tick of
// a new entry. If the entry makes b large, b expires before its slot begins or, if the
// clock has passed that tick, when its slot begins.
func (w *Wheel[T]) expireNoLaterThan(b bucket.Bucket, place uint32, t int64, n uint) {
	if load := w.arena.Load(b) + 1; load <= largeBucketLoad {
		w.arena.SetLoad(b, load)
		if load == largeBucketLoad {
			s := n * w.slotBits & 63
			slotBegin := t >> s << s
			if t = slotBegin - w.leadOf(1<<s); t <= w.clockTick {
				t = slotBegin
			}
		}
	}
	expiration := w.arena.Expiration(b)
	if t < expiration {
		w.setExpirationAndOffer(b, place, t)
	}
}

// leadOf returns how many ticks before its slot begins a large bucket expires: a quarter of
// the slot's length, and on high levels no more than on level 2. With an eighth, a million
// timers a second were twice as late: see Expiry in package benchmarks.
func (w *Wheel[T]) leadOf(slotLength int64) int64 {
	return min(slotLength, 1<<(2*w.slotBits&63)) / 4
}

// setExpirationAndOffer sets the expiration of a queued bucket, and offers the bucket to
// the queue, if there is one.
func (w *Wheel[T]) setExpirationAndOffer(b bucket.Bucket, place uint32, expiration int64) {
	w.arena.SetExpiration(b, expiration)
	w.nextExpiration = min(w.nextExpiration, expiration)
	if w.offerBucket != nil {
		w.offerBucket(b, place, w.converter.timeOfTick(expiration))
	}
}

// insertEntry puts entry i, which is in no bucket, into the bucket for tick t.
func (w *Wheel[T]) insertEntry(i bucket.Index, t int64) {
	b, place := w.queueBucketForTick(t)
	w.arena.SetPlace(i, place)
	w.arena.PushBack(b, i)
}

// addLevels makes all levels up to n. The buckets of their slots are made later.
func (w *Wheel[T]) addLevels(n uint) {
	w.mustBeMade()
	for uint(len(w.levels)) <= n {
		w.levels = append(w.levels, level{
			dueList:    w.arena.NewBuckets(1),
			queuedBits: make([]uint64, (w.slotMask+64)/64),
		})
	}
}

// bucketOf returns the bucket that entry i was last placed in.
func (w *Wheel[T]) bucketOf(i bucket.Index) bucket.Bucket {
	p := w.arena.Place(i)
	return w.levels[p>>w.slotBits].firstBucket + bucket.Bucket(p&w.slotMask)
}

// updateNextExpiration sets nextExpiration after a bucket has left the queue. O(levels *
// size / 64).
func (w *Wheel[T]) updateNextExpiration() {
	w.nextExpiration = math.MaxInt64
	for n := range w.levels {
		if _, expiration, ok := w.nextBucket(n); ok {
			w.nextExpiration = min(w.nextExpiration, expiration)
		}
	}
}

// nextBucket returns the slot and the expiration of the bucket of level n that expires
// first. It reports false if no bucket of the level is queued.
func (w *Wheel[T]) nextBucket(n int) (slot uint32, expiration int64, ok bool) {
	l := &w.levels[n]
	clockSlot := uint32(w.clockTick>>(uint(n)*w.slotBits)) & w.slotMask
	if slot, ok = l.nextQueuedSlot(clockSlot); !ok {
		return 0, 0, false
	}
	expiration = w.arena.Expiration(l.firstBucket + bucket.Bucket(slot))
	if n > 0 {
		// The bucket of the next slot may be large, and then expires before that slot
		// begins. The bucket of this slot may expire when the slot ends.
		nextSlot, _ := l.nextQueuedSlot((slot + 1) & w.slotMask)
		if e := w.arena.Expiration(l.firstBucket + bucket.Bucket(nextSlot)); e < expiration {
			return nextSlot, e, true
		}
	}
	return slot, expiration, true
}
