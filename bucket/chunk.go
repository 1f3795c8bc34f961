package bucket

import "fmt"

// ChunkSize is the number of slots in a chunk. The arena allocates and gives back memory
// one chunk at a time.
const ChunkSize = 1 << chunkShift

const (
	// A chunk of 1,024 slots with pointers takes exactly 32 kB, so the allocator wastes
	// nothing. For 512 slots it would waste an eighth.
	chunkShift = 10
	chunkMask  = ChunkSize - 1
	maxChunks  = 1 << (indexBits - chunkShift)
)

// chunk is the state of a chunk, except the slots themselves.
type chunk struct {
	// freshGen is the generation of the chunk's fresh slots. It is zero if all slots of the
	// chunk are sentinels.
	freshGen uint64
	// used counts the slots that are live, retired or sentinels. The chunk has room while
	// used is less than ChunkSize. firstFresh is the position of the first slot that was
	// never used.
	used, firstFresh uint16
	// firstFree is the position, plus 1, of the first slot in the list of freed slots. It
	// is 0 if the list is empty.
	firstFree uint16
	// prev and next link the chunks that have room into a ring. Chunk 0 is the ring's
	// sentinel and has no slots.
	prev, next uint32
}

func (a *Arena[T]) body(i Index) *body { return &a.memories[i>>chunkShift].bodies[i&chunkMask] }

func (a *Arena[T]) link(i Index) *link { return &a.memories[i>>chunkShift].links[i&chunkMask] }

// init makes chunk 0. It has no slots, so no entry gets index 0.
func (a *Arena[T]) init() {
	a.memories = append(a.memories, nil)
	a.chunks = append(a.chunks, chunk{})
}

// # Which chunk gets the next entry
//
// A slot that was just freed is still in the processor's cache. So its chunk becomes the
// current chunk, which gets the next entry.
//
// A chunk that is less than half full does not become current. So it can become empty,
// and is then given back.

// takeSlot makes a slot live. Its tag, grain and place are zero. m is the memory of the
// slot's chunk.
func (a *Arena[T]) takeSlot() (i Index, m *memory[T]) {
	if a.currentChunk == 0 {
		a.nextChunk()
	}
	n := a.currentChunk
	c := &a.chunks[n]
	m = a.memories[n]
	pos := c.firstFresh
	if c.firstFree != 0 {
		pos = c.firstFree - 1
		c.firstFree = uint16(m.links[pos&chunkMask].next)
		s := &m.bodies[pos&chunkMask]
		s.setLive(s.gen()) // setFree has incremented the generation
	} else {
		c.firstFresh++
		m.bodies[pos&chunkMask].setLive(c.freshGen)
	}
	a.liveCount++
	c.used++
	if c.used == ChunkSize {
		a.unlinkChunk(n)
		a.currentChunk = 0
	} else if n == a.spareChunk {
		a.spareChunk = 0
	}
	return Index(n)<<chunkShift | Index(pos), m
}

// takeFreshSlots takes k consecutive slots that were never used, as sentinels, and
// returns the first. They stay in use until Release. O(chunks with room).
func (a *Arena[T]) takeFreshSlots(k int) Index {
	if a.memories == nil {
		a.init()
	}
	n := a.chunks[0].next
	for n != 0 && int(a.chunks[n].firstFresh)+k > ChunkSize {
		n = a.chunks[n].next
	}
	switch {
	case n != 0:
	case k < ChunkSize:
		n = a.newChunk()
	default:
		// Take whole chunks, and a part of one more chunk for the remainder.
		wholeChunks := k / ChunkSize
		first := Index(a.appendChunks(wholeChunks)) << chunkShift
		if k %= ChunkSize; k > 0 {
			n = a.appendChunks(1)
			a.chunks[n].freshGen = max(a.firstGen, 1)
			a.linkChunk(n)
			a.useFreshSlots(n, k)
		}
		return first
	}
	return Index(n)<<chunkShift | Index(a.useFreshSlots(n, k))
}

// useFreshSlots takes the next k fresh slots of chunk n and returns the position of the
// first. The chunk must have k fresh slots.
func (a *Arena[T]) useFreshSlots(n uint32, k int) (pos uint16) {
	c := &a.chunks[n]
	pos = c.firstFresh
	c.firstFresh += uint16(k)
	c.used += uint16(k)
	if n == a.spareChunk {
		a.spareChunk = 0
	}
	if c.used == ChunkSize {
		a.unlinkChunk(n)
		if a.currentChunk == n {
			a.currentChunk = 0
		}
	}
	return pos
}

// nextChunk finds or makes a chunk with room, and makes it the current one.
func (a *Arena[T]) nextChunk() {
	if a.memories == nil {
		a.init()
	}
	if a.currentChunk = a.chunks[0].next; a.currentChunk == 0 {
		a.currentChunk = a.newChunk()
	}
}

// freeSlot frees slot i. m is the memory of its chunk.
func (a *Arena[T]) freeSlot(i Index, m *memory[T]) {
	a.liveCount--
	s := &m.bodies[i&chunkMask]
	gen := s.gen() + 1
	if gen > maxGen {
		// No generation is left: the Ref of a new entry would equal an old one. So the
		// slot is retired: it counts as used for ever.
		s.word = 0
		a.highestGen = maxGen
		return
	}
	n := uint32(i >> chunkShift)
	c := &a.chunks[n]
	s.setFree(gen)
	m.links[i&chunkMask].next = Index(c.firstFree)
	c.firstFree = uint16(i&chunkMask) + 1
	used := c.used - 1
	c.used = used
	if used >= ChunkSize/2 {
		if used == ChunkSize-1 {
			a.linkChunk(n)
		}
		a.currentChunk = n
		return
	}
	if used == 0 {
		a.freeChunk(n)
	}
}

// freeChunk gives back chunk n, which is empty, or keeps it as the spare.
func (a *Arena[T]) freeChunk(n uint32) {
	if a.spareChunk == 0 {
		// Move the chunk to the end of the ring, so that it is used last.
		a.unlinkChunk(n)
		a.insertChunk(n, a.chunks[0].prev)
		if a.currentChunk == n {
			a.currentChunk = a.chunks[0].next
		}
		a.spareChunk = n
		return
	}
	a.unlinkChunk(n)
	if a.currentChunk == n {
		a.currentChunk = 0
	}
	// The next chunk with this number starts at the highest generation of this chunk, so
	// that old Refs stay stale.
	c := &a.chunks[n]
	highestGen := a.highestGenIn(n)
	a.highestGen = max(a.highestGen, highestGen)
	*c = chunk{freshGen: highestGen}
	a.memories[n] = nil
	a.vacantChunks = append(a.vacantChunks, n)
}

// highestGenIn returns the highest generation of a slot in chunk n, which has no live
// slot.
func (a *Arena[T]) highestGenIn(n uint32) uint64 {
	c := &a.chunks[n]
	highestGen := c.freshGen
	for p := range a.memories[n].bodies[:c.firstFresh] {
		highestGen = max(highestGen, a.memories[n].bodies[p].gen())
	}
	return highestGen
}

// newChunk makes a chunk and links it. It reuses a vacant number if there is one.
func (a *Arena[T]) newChunk() uint32 {
	var n uint32
	if last := len(a.vacantChunks) - 1; last >= 0 {
		n = a.vacantChunks[last]
		a.vacantChunks = a.vacantChunks[:last]
		a.memories[n] = new(memory[T])
	} else {
		n = a.appendChunks(1)
		a.chunks[n].freshGen = max(a.firstGen, 1)
	}
	a.linkChunk(n)
	return n
}

// appendChunks makes k chunks with consecutive numbers and returns the first.
func (a *Arena[T]) appendChunks(k int) uint32 {
	if a.memories == nil {
		a.init()
	}
	n := len(a.memories)
	if n+k > maxChunks {
		panic(fmt.Sprintf("bucket: the arena is full: %d entries", a.liveCount))
	}
	for range k {
		a.memories = append(a.memories, new(memory[T]))
		a.chunks = append(a.chunks, chunk{})
	}
	return uint32(n)
}

// linkChunk puts chunk n at the front of the ring of chunks with room.
func (a *Arena[T]) linkChunk(n uint32) { a.insertChunk(n, 0) }

// insertChunk links chunk n into the ring, after chunk prev.
func (a *Arena[T]) insertChunk(n, prev uint32) {
	next := a.chunks[prev].next
	a.chunks[n].prev, a.chunks[n].next = prev, next
	a.chunks[prev].next = n
	a.chunks[next].prev = n
}

func (a *Arena[T]) unlinkChunk(n uint32) {
	c := &a.chunks[n]
	a.chunks[c.prev].next = c.next
	a.chunks[c.next].prev = c.prev
}
