package delayqueue

import (
	"math"

	"github.com/emirpasic/gods/v2/trees/binaryheap"
)

// A key is what the heap orders. It has no pointers: the garbage collector does not scan
// the heap's array, and keys that stay in the array after a pop keep nothing alive.
//
// A key is dead when there is no element numbered seq. The heap cannot take a key out of
// its middle, so Remove leaves the key behind as a tombstone.
type key struct {
	due int64  // moment, see moment.go
	seq uint64 // number of the Offer, from 1
}

// compare orders keys by deadline, then by age. Spelt out it saves 15% of a
// pop and a push against two calls of cmp.Compare.
func compare(a, b key) int {
	switch {
	case a.due < b.due:
		return -1
	case a.due > b.due:
		return 1
	case a.seq < b.seq:
		return -1
	case a.seq > b.seq:
		return 1
	default:
		return 0
	}
}

// The heap's array shrinks to fit when three quarters of it are unused and
// grows to double when it is full. With fewer than two keys it would do both in turn:
// a queue that is empty most of the time would allocate with every Offer. So every heap
// has two keys that sort after all others.
const floorKeys = 2

var floor = key{due: never, seq: math.MaxUint64}

// A keyHeap is a binary heap of keys.
type keyHeap struct{ h *binaryheap.Heap[key] }

func newKeyHeap(keys ...key) keyHeap {
	h := binaryheap.NewWith(compare)
	h.Push(floor, floor)
	h.Push(keys...) // linear: many at once are sifted from the bottom up
	return keyHeap{h}
}

// size returns how many keys there are, dead ones included.
func (h keyHeap) size() int { return h.h.Size() - floorKeys }

func (h keyHeap) push(k key) { h.h.Push(k) }

// head returns the first key.
func (h keyHeap) head() (k key, ok bool) {
	k, _ = h.h.Peek()
	return k, k != floor
}

// pop drops the first key, which there must be.
func (h keyHeap) pop() { h.h.Pop() }
