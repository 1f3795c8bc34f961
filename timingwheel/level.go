package timingwheel

import (
	"math/bits"

	"github.com/tickless/tickless/bucket"
)

// level is one wheel of the hierarchy: a ring of size buckets.
//
// A bucket is queued from the moment its first entry is placed in it until it
// expires, even if all its entries leave before. It expires when the first of its
// entries is due, or earlier, and never before the first tick of its slot: see reach.
// Its expiration only moves earlier meanwhile.
//
// The clock never passes the expiration of a queued bucket. So the slots of those of
// level n lie from the one that the clock is in to less than a turn after it, and a
// slot stands for one stretch of time. Nothing is placed in the slot that the clock
// is in: what is due in it goes to a lower level, and what is due a turn later to a
// higher one.
type level struct {
	// first is the bucket of slot 0; those of the other slots follow. It is zero until the
	// level gets its first entry: most levels never get one.
	first bucket.Bucket
	// due is the list of entries taken out of expired buckets of the level and not
	// yet handed out or placed again. Nothing else is ever added to it.
	due bucket.Bucket
	// queued has a bit for each bucket.
	queued []uint64
}

func (l *level) isQueued(slot uint32) bool { return l.queued[slot>>6]&(1<<(slot&63)) != 0 }
func (l *level) setQueued(slot uint32)     { l.queued[slot>>6] |= 1 << (slot & 63) }
func (l *level) clearQueued(slot uint32)   { l.queued[slot>>6] &^= 1 << (slot & 63) }

// nextQueued returns the first queued slot at or after from, in the order of
// the ring, or false if no bucket is queued.
func (l *level) nextQueued(from uint32) (uint32, bool) {
	w := int(from >> 6)
	if b := l.queued[w] >> (from & 63); b != 0 {
		return from + uint32(bits.TrailingZeros64(b)), true
	}
	// The rest of the ring, ending with the word that it began in.
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
