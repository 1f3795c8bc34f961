package bucket

import "fmt"

// ChunkSize is the number of slots in a chunk. The arena allocates and gives back memory
// one chunk at a time.
const ChunkSize = 1 << chunkShift

const (
	// A chunk of 1024 slots with pointers as payloads takes 32 kB. The allocator gives it
	// whole pages. For a chunk of 512 slots it would waste an eighth.
	chunkShift = 10
	chunkMask  = ChunkSize - 1
	maxChunks  = 1 << (indexBits - chunkShift)
)

// chunk is the state of a chunk, except the slots themselves.
type chunk struct {
	// gen is the generation of the chunk's fresh slots. It is zero if all slots of the
	// chunk are sentinels.
	gen uint64
	// used is the number of slots that are live, retired or sentinels. The chunk has room
	// while used is less than ChunkSize. fresh is the position of the first slot that was
	// never used.
	used, fresh uint16
	// free is the position of the first slot that is free again, plus 1; 0 if there is
	// none.
	free uint16
	// prev and next link the chunks that have room into a ring. Chunk 0 is the ring's
	// sentinel and has no slots.
	prev, next uint32
}

func (a *Arena[T]) body(i Index) *body { return &a.dir[i>>chunkShift].bodies[i&chunkMask] }

func (a *Arena[T]) link(i Index) *link { return &a.dir[i>>chunkShift].links[i&chunkMask] }

// init makes chunk 0. It has no slots, so no entry gets index 0.
func (a *Arena[T]) init() {
	a.dir = append(a.dir, nil)
	a.chunks = append(a.chunks, chunk{})
}

// # Which chunk the next entry goes to
//
// A slot that was just freed is fast to reuse: it is still in the processor's cache. So
// freeing an entry makes its chunk the current one, if the chunk is at least half full. A
// chunk that is less than half full is left alone, so that it can become empty and be
// given back. Otherwise the last thousand of a million entries would keep a thousand
// chunks in memory.

// takeSlot makes a slot live. It returns the slot and the memory of the slot's chunk. The
// slot has its next generation; its tag, grain and place are zero.
func (a *Arena[T]) takeSlot() (i Index, m *memory[T]) {
	if a.current == 0 {
		a.nextChunk()
	}
	n := a.current
	c := &a.chunks[n]
	m = a.dir[n]
	pos := c.fresh
	if c.free != 0 {
		pos = c.free - 1
		c.free = uint16(m.links[pos&chunkMask].next)
		s := &m.bodies[pos&chunkMask]
		s.live(s.gen()) // raised when it was freed
	} else {
		c.fresh++
		m.bodies[pos&chunkMask].live(c.gen)
	}
	a.live++
	c.used++
	if c.used == ChunkSize {
		a.unlinkChunk(n)
		a.current = 0
	} else if n == a.spare {
		a.spare = 0
	}
	return Index(n)<<chunkShift | Index(pos), m
}

// takeFreshSlots takes k consecutive slots for sentinels and returns the first. The slots
// were never used before, stay in use until Release, and have no generation. Entries may
// use the other slots of the same chunk. O(chunks with room).
func (a *Arena[T]) takeFreshSlots(k int) Index {
	if a.dir == nil {
		a.init()
	}
	n := a.chunks[0].next
	for n != 0 && int(a.chunks[n].fresh)+k > ChunkSize {
		n = a.chunks[n].next
	}
	switch {
	case n != 0:
	case k < ChunkSize:
		n = a.newChunk()
	default:
		// Take whole chunks, and a part of one more chunk for the remainder.
		whole := k / ChunkSize
		first := Index(a.appendChunks(whole)) << chunkShift
		if k %= ChunkSize; k > 0 {
			n = a.appendChunks(1)
			a.chunks[n].gen = max(a.base, 1)
			a.linkChunk(n)
			a.useFresh(n, k)
		}
		return first
	}
	return Index(n)<<chunkShift | Index(a.useFresh(n, k))
}

// useFresh takes the next k fresh slots of chunk n and returns the position of the first.
// The chunk must have k fresh slots.
func (a *Arena[T]) useFresh(n uint32, k int) (pos uint16) {
	c := &a.chunks[n]
	pos = c.fresh
	c.fresh += uint16(k)
	c.used += uint16(k)
	if n == a.spare {
		a.spare = 0
	}
	if c.used == ChunkSize {
		a.unlinkChunk(n)
		if a.current == n {
			a.current = 0
		}
	}
	return pos
}

// nextChunk finds or makes a chunk with room, and makes it the current one.
func (a *Arena[T]) nextChunk() {
	if a.dir == nil {
		a.init()
	}
	if a.current = a.chunks[0].next; a.current == 0 {
		a.current = a.newChunk()
	}
}

// freeSlot frees slot i. m is the memory of its chunk.
func (a *Arena[T]) freeSlot(i Index, m *memory[T]) {
	a.live--
	s := &m.bodies[i&chunkMask]
	gen := s.gen() + 1
	if gen > maxGen {
		// The slot has used all of its generations, so it is retired: another entry in it
		// would match the Ref of an older entry. The slot and its chunk stay in use for
		// ever.
		s.word = 0
		a.high = maxGen
		return
	}
	n := uint32(i >> chunkShift)
	c := &a.chunks[n]
	s.free(gen)
	m.links[i&chunkMask].next = Index(c.free)
	c.free = uint16(i&chunkMask) + 1
	used := c.used - 1
	c.used = used
	if used >= ChunkSize/2 {
		if used == ChunkSize-1 {
			a.linkChunk(n)
		}
		a.current = n
		return
	}
	if used == 0 {
		a.emptied(n)
	}
}

// freeChunk gives back chunk n, which is empty, or keeps it as the spare.
func (a *Arena[T]) emptied(n uint32) {
	if a.spare == 0 {
		// Move the chunk to the end of the ring, so that it is used last.
		a.unlinkChunk(n)
		a.insertChunk(n, a.chunks[0].prev)
		if a.current == n {
			a.current = a.chunks[0].next
		}
		a.spare = n
		return
	}
	a.unlinkChunk(n)
	if a.current == n {
		a.current = 0
	}
	// The next chunk with this number starts at the highest generation of this chunk, so
	// that old Refs stay stale.
	c := &a.chunks[n]
	high := a.highest(n)
	a.high = max(a.high, high)
	*c = chunk{gen: high}
	a.dir[n] = nil
	a.vacant = append(a.vacant, n)
}

// highestGenIn returns the highest generation of a slot in chunk n, which has no live
// slot.
func (a *Arena[T]) highest(n uint32) uint64 {
	c := &a.chunks[n]
	high := c.gen
	for p := range a.dir[n].bodies[:c.fresh] {
		high = max(high, a.dir[n].bodies[p].gen())
	}
	return high
}

// newChunk makes a chunk and links it. It reuses a vacant number if there is one.
func (a *Arena[T]) newChunk() uint32 {
	var n uint32
	if last := len(a.vacant) - 1; last >= 0 {
		n = a.vacant[last]
		a.vacant = a.vacant[:last]
		a.dir[n] = new(memory[T])
	} else {
		n = a.appendChunks(1)
		a.chunks[n].gen = max(a.base, 1)
	}
	a.linkChunk(n)
	return n
}

// appendChunks makes k chunks with consecutive numbers and returns the first.
func (a *Arena[T]) appendChunks(k int) uint32 {
	if a.dir == nil {
		a.init()
	}
	n := len(a.dir)
	if n+k > maxChunks {
		panic(fmt.Sprintf("bucket: the arena is full: %d entries", a.live))
	}
	for range k {
		a.dir = append(a.dir, new(memory[T]))
		a.chunks = append(a.chunks, chunk{})
	}
	return uint32(n)
}

// linkChunk puts chunk n at the front of the ring of chunks with room.
func (a *Arena[T]) linkChunk(n uint32) { a.insertChunk(n, 0) }

// insertChunk links chunk n into the ring, after chunk prev.
func (a *Arena[T]) insertChunk(n, at uint32) {
	next := a.chunks[at].next
	a.chunks[n].prev, a.chunks[n].next = at, next
	a.chunks[at].next = n
	a.chunks[next].prev = n
}

func (a *Arena[T]) unlinkChunk(n uint32) {
	c := &a.chunks[n]
	a.chunks[c.prev].next = c.next
	a.chunks[c.next].prev = c.prev
}
