package delayqueue

// chunkLen is the number of slots in a chunk.
const chunkLen = 256

// none ends a list of slots or of chunks.
const none = -1

// A slab keeps the elements in slots, whose numbers do not change while they
// are in use. Slots come in chunks, and a chunk whose last element has left
// gives back its memory, all but one spare.
//
// It is not safe for concurrent use.
type slab[T any] struct {
	chunks []chunk[T]
	room   int       // first of the list of chunks that are not full, or none
	spare  []slot[T] // the slots of an emptied chunk, all of them free, or nil
	live   int       // elements
}

// A chunk is in the slab's list of those with room exactly while live is less
// than chunkLen. One that has no elements has no slots either.
type chunk[T any] struct {
	slots []slot[T] // as many as were ever needed at once
	free  int       // first of the list of free slots, or none
	live  int       // elements
	next  int       // next chunk with room, or none
}

// A slot holds one element, or is free.
type slot[T any] struct {
	seq uint64 // number of the Offer; 0 when free
	due int64  // moment; when free, the next free slot's place in the chunk
	v   T      // zero when free, so that nothing is retained
}

func newSlab[T any]() slab[T] { return slab[T]{room: none} }

// put stores an element and returns its slot's number.
func (s *slab[T]) put(seq uint64, due int64, v T) int {
	if s.room == none {
		s.room = len(s.chunks)
		s.chunks = append(s.chunks, chunk[T]{free: none, next: none})
	}
	n := s.room
	c := &s.chunks[n]
	if c.live == 0 {
		if s.spare != nil {
			c.slots, s.spare = s.spare[:0], nil
		} else if n > 0 {
			c.slots = make([]slot[T], 0, chunkLen)
		} // else the first chunk grows by append: most queues are small
	}
	i := c.free
	if i != none {
		c.free = int(c.slots[i].due)
	} else {
		i = len(c.slots)
		c.slots = append(c.slots, slot[T]{})
	}
	c.slots[i] = slot[T]{seq: seq, due: due, v: v}
	c.live++
	s.live++
	if c.live == chunkLen {
		s.room = c.next
	}
	return n*chunkLen + i
}

// get returns the slot of that number, if it holds the element numbered seq,
// and nil if not.
func (s *slab[T]) get(number int, seq uint64) *slot[T] {
	n, i := number/chunkLen, number%chunkLen
	if seq == 0 || n >= len(s.chunks) || i >= len(s.chunks[n].slots) || s.chunks[n].slots[i].seq != seq {
		return nil
	}
	return &s.chunks[n].slots[i]
}

// take takes the element numbered seq out of its slot. Not ok: it is no longer
// there.
func (s *slab[T]) take(number int, seq uint64) (v T, ok bool) {
	e := s.get(number, seq)
	if e == nil {
		return v, false
	}
	v = e.v
	n := number / chunkLen
	c := &s.chunks[n]
	*e = slot[T]{due: int64(c.free)}
	c.free = number % chunkLen
	if c.live == chunkLen {
		c.next, s.room = s.room, n
	}
	c.live--
	s.live--
	if c.live == 0 {
		if s.spare == nil {
			s.spare = c.slots
		}
		c.slots, c.free = nil, none
	}
	if s.live == 0 && len(s.chunks) > 1 {
		s.chunks, s.room = nil, none
	}
	return v, true
}

// keys returns the keys of all elements, in no particular order.
func (s *slab[T]) keys() []key {
	keys := make([]key, 0, s.live)
	for n := range s.chunks {
		for i := range s.chunks[n].slots {
			if e := &s.chunks[n].slots[i]; e.seq != 0 {
				keys = append(keys, key{due: e.due, seq: e.seq, slot: n*chunkLen + i})
			}
		}
	}
	return keys
}
