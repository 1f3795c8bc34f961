package timingwheel

import (
	"math/bits"

	"github.com/tickless/tickless/bucket"
)

// level is one wheel of the hierarchy: a ring of size buckets.
//
// A bucket is queued from the moment its first entry is placed in it until it
// expires, even if all its entries leave before; its expiration never changes
// meanwhile. The queued buckets of level n all expire after the level's clock
// and less than a turn after it, so that a slot stands for one expiration.
// (One exception: a bucket whose expiration the clock has just reached, because
// another bucket with the same one was expired first. Nothing can be placed in
// it any more: what is due then goes to no bucket, and what is due a turn later
// goes to a higher level.)
type level struct {
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
