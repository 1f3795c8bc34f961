package timingwheel

import (
	"math/bits"

	"github.com/tickless/tickless/bucket"
)

// level is one wheel of the hierarchy: a ring of buckets, one for each slot.
//
// A bucket is queued from the moment its first entry is placed in it until it expires,
// even if all its entries are removed before. It expires when its first entry is due, or
// earlier, but never before the first tick of its slot: see expireBy. While it is queued,
// its expiration only moves earlier.
//
// The clock never passes the expiration of a queued bucket. So the queued slots of a
// level lie between the clock's slot and one turn later, and each stands for one range of
// ticks. No entry is placed in the clock's own slot: an entry that is due there now goes
// to a lower level, and one that is due a turn later to a higher level.
type level struct {
	// first is the bucket of slot 0; the buckets of the other slots follow. It is zero
	// until the level gets its first entry: most levels never get one.
	first bucket.Bucket
	// due is the list of entries taken from expired buckets of this level and not yet
	// handed out or moved down. Nothing else is added to it.
	due bucket.Bucket
	// queued has a bit for each slot.
	queued []uint64
}

func (l *level) isQueued(slot uint32) bool { return l.queued[slot>>6]&(1<<(slot&63)) != 0 }
func (l *level) setQueued(slot uint32)     { l.queued[slot>>6] |= 1 << (slot & 63) }
func (l *level) clearQueued(slot uint32)   { l.queued[slot>>6] &^= 1 << (slot & 63) }

// nextQueued returns the first queued slot at or after from, in ring order. It reports
// false if no slot is queued.
func (l *level) nextQueued(from uint32) (uint32, bool) {
	w := int(from >> 6)
	if b := l.queued[w] >> (from & 63); b != 0 {
		return from + uint32(bits.TrailingZeros64(b)), true
	}
	// The other words of the ring, and at the end the first word again.
	for range l.queued {
		w++
		if w == len(l.queued) {
			w = 0
		}
		if b := l.queued[w]; b != 0 {
			return uint32(w<<6 + bits.TrailingZeros64(b)), true
		}
	}
	return 0, false
}
