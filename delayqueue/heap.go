package delayqueue

import (
	"cmp"
	"math"
	"slices"

	"github.com/emirpasic/gods/v2/trees/binaryheap"
)

// never is the moment of a deadline beyond the range of int64 nanoseconds. It is never
// due, even if the clock reads that moment.
const never = math.MaxInt64

// isDue reports whether a deadline at moment dueAt has passed by moment now.
func isDue(dueAt, now int64) bool { return dueAt <= now && dueAt != never }

// A key is an element's entry in the heap. It has no pointers, so the garbage collector
// does not scan the heap. It is small, because the heap copies keys all the time.
type key struct {
	dueAt int64 // a moment: nanoseconds since the queue's epoch
	slot  uint32
}

// A slot holds an element.
//
// The heap cannot remove a key from its middle. So if an element is removed there, its
// slot is marked, and it is free only when its key has left the heap.
type slot[T any] struct {
	value T      // zero if the slot is free or marked
	dueAt int64  // as in the key
	seq   uint64 // the number of the Offer, from 1; 0 if the slot is free
	// ticketSlot is the number of the slot that the element was offered to: see shrink.
	// In a free slot it is the number of the next free slot, or 0.
	ticketSlot uint32
	removed    bool // the mark
}

// elements holds a queue's elements in slots, and their keys in a binary heap. Between
// calls the first key is never that of a removed element.
//
// Slot 0 is no element's. Two sentinels, keys that sort after all others, stand for it:
// without them, the array of a nearly empty heap would be allocated again and again.
type elements[T any] struct {
	heap      *binaryheap.Heap[key]
	slots     []slot[T]
	firstFree uint32 // 0 if no slot is free
	live      int    // elements
	dead      int    // removed elements whose keys are still in the heap

	// movedSeqs are the seqs, in ascending order, of the elements that the last shrink
	// moved, to slots 1, 2, 3 and so on.
	movedSeqs []uint64
}

// Small queues are not rebuilt: there must be more than rebuildThreshold removed elements
// for a new heap, or slots for a smaller array.
const rebuildThreshold = 64

var sentinel = key{dueAt: never}

func (e *elements[T]) init() {
	*e = elements[T]{slots: []slot[T]{{seq: math.MaxUint64}}}
	e.newHeap(nil)
}

// newHeap makes a heap of the keys. It orders them by deadline, and equal deadlines by
// seq. That the seqs are in the slots costs less than larger keys. A func literal saves
// one of two calls for each comparison: see BenchmarkOfferPoll.
func (e *elements[T]) newHeap(keys []key) {
	e.heap = binaryheap.NewWith(func(a, b key) int {
		if a.dueAt != b.dueAt {
			if a.dueAt < b.dueAt {
				return -1
			}
			return 1
		}
		return e.compareSeqs(a, b)
	})
	e.heap.Push(sentinel, sentinel)
	e.heap.Push(keys...) // O(n) for many keys in one call
}

func (e *elements[T]) compareSeqs(a, b key) int {
	return cmp.Compare(e.slots[a.slot].seq, e.slots[b.slot].seq)
}

// first returns the first key. It reports false if there is no element.
func (e *elements[T]) first() (k key, ok bool) {
	k, _ = e.heap.Peek()
	return k, k.slot != 0
}

// ticket returns the ticket of the element in a slot.
func (e *elements[T]) ticket(number uint32) Ticket {
	s := &e.slots[number]
	return Ticket{s.seq, s.ticketSlot}
}

// push adds an element and returns its slot's number.
func (e *elements[T]) push(v T, dueAt int64, seq uint64) (number uint32) {
	if number = e.firstFree; number != 0 {
		e.firstFree = e.slots[number].ticketSlot
	} else {
		number = uint32(len(e.slots)) // 2^32 elements would not fit into 128 GiB
		e.slots = append(e.slots, slot[T]{})
	}
	e.slots[number] = slot[T]{v, dueAt, seq, number, false}
	e.heap.Push(key{dueAt, number})
	e.live++
	return number
}

// pop takes the first element, which must exist.
func (e *elements[T]) pop() T {
	k, _ := e.heap.Pop()
	v := e.slots[k.slot].value
	e.free(k.slot)
	e.live--
	e.tidy()
	return v
}

// remove takes the ticket's element.
func (e *elements[T]) remove(t Ticket) (v T, ok bool) {
	number := int(t.slot)
	if n := len(e.movedSeqs); n > 0 && t.seq <= e.movedSeqs[n-1] {
		i, _ := slices.BinarySearch(e.movedSeqs, t.seq)
		number = 1 + i
	}
	// The slot may be another element's, if the ticket's element has left.
	if t.seq == 0 || number >= len(e.slots) || e.slots[number].seq != t.seq || e.slots[number].removed {
		return v, false
	}
	s := &e.slots[number]
	var zero T
	v, s.value, s.removed = s.value, zero, true
	e.live--
	e.dead++
	e.tidy()
	return v, true
}

func (e *elements[T]) free(number uint32) {
	e.slots[number] = slot[T]{ticketSlot: e.firstFree}
	e.firstFree = number
}

// tidy restores what holds between calls, after an element has left: the first key's
// element is not removed, at most half of the keys are those of removed elements, and at
// least a quarter of the slots hold elements.
func (e *elements[T]) tidy() {
	for e.dead > 0 {
		k, _ := e.heap.Peek()
		if !e.slots[k.slot].removed {
			break
		}
		e.heap.Pop()
		e.free(k.slot)
		e.dead--
	}
	if len(e.slots) > rebuildThreshold && e.live < len(e.slots)/4 {
		e.shrink()
	} else if e.dead > max(e.live, rebuildThreshold) {
		e.newHeap(e.liveKeys())
	}
}

// liveKeys returns the keys of all elements, and frees the slots of removed ones, whose
// keys the caller must drop. The heap's own iterator takes O(n) for each key.
func (e *elements[T]) liveKeys() []key {
	keys := make([]key, 0, e.live)
	for i := range e.slots[1:] {
		number := uint32(1 + i)
		switch s := &e.slots[number]; {
		case s.removed:
			e.free(number)
		case s.seq != 0:
			keys = append(keys, key{s.dueAt, number})
		}
	}
	e.dead = 0
	return keys
}

// shrink moves all elements into a smaller array, in the order of their seqs. Their
// tickets still name the slots in which they were: remove looks up where they are now.
func (e *elements[T]) shrink() {
	keys := e.liveKeys()
	slices.SortFunc(keys, e.compareSeqs)
	slots := append(make([]slot[T], 0, 1+2*len(keys)), e.slots[0])
	e.movedSeqs = make([]uint64, len(keys))
	for i, k := range keys {
		e.movedSeqs[i] = e.slots[k.slot].seq
		keys[i].slot = uint32(len(slots))
		slots = append(slots, e.slots[k.slot])
	}
	e.slots, e.firstFree = slots, 0
	e.newHeap(keys)
}
