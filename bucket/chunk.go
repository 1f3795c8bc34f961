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

// chunkState is the state of a chunk, except the slots themselves.
type chunkState struct {
	// freshGen is the generation of the chunk's fresh slots. It is zero if all slots of
	// the chunk are sentinels.
	freshGen uint64
	// usedCount is the number of slots that are live, retired or sentinels. The chunk has
	// room while usedCount is less than ChunkSize. firstFreshPos is the position of the
	// first slot that was never used.
	usedCount, firstFreshPos uint16
	// firstFreePlus1 is the position, plus 1, of the first slot in the list of freed
	// slots. It is 0 if the list is empty.
	firstFreePlus1 uint16
	// prev and next link the chunks that have room into a ring. Chunk 0 is the ring's
	// sentinel and has no slots.
	prev, next uint32
}

func (a *Arena[T]) header(i Index) *header { return &a.chunkSlots[i>>chunkShift].headers[i&chunkMask] }

func (a *Arena[T]) link(i Index) *link { return &a.chunkSlots[i>>chunkShift].links[i&chunkMask] }

// init makes chunk 0. It has no slots, so no entry gets index 0.
func (a *Arena[T]) init() {
	a.chunkSlots = append(a.chunkSlots, nil)
	a.chunkStates = append(a.chunkStates, chunkState{})
}

// # Which chunk gets the next entry
//
// A slot that was just freed is still in the processor's cache. So its chunk becomes the
// current chunk, which gets the next entry.
//
// A chunk that is less than half full does not become current. So it can become empty,
// and is then given back.

// takeSlot makes a slot live. Its tag, grain and place are zero. m holds the slots of
// its chunk.
func (a *Arena[T]) takeSlot() (i Index, m *slotArrays[T]) {
	if a.currentChunk == 0 {
		a.chooseCurrentChunk()
	}
	n := a.currentChunk
	c := &a.chunkStates[n]
	m = a.chunkSlots[n]
	pos := c.firstFreshPos
	if c.firstFreePlus1 != 0 {
		pos = c.firstFreePlus1 - 1
		c.firstFreePlus1 = uint16(m.links[pos&chunkMask].next)
		s := &m.headers[pos&chunkMask]
		s.setLive(s.gen()) // setFree has incremented the generation
	} else {
		c.firstFreshPos++
		m.headers[pos&chunkMask].setLive(c.freshGen)
	}
	a.liveCount++
	c.usedCount++
	if c.usedCount == ChunkSize {
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
	if a.chunkSlots == nil {
		a.init()
	}
	n := a.chunkStates[0].next
	for n != 0 && int(a.chunkStates[n].firstFreshPos)+k > ChunkSize {
		n = a.chunkStates[n].next
	}
	switch {
	case n != 0:
	case k < ChunkSize:
		n = a.newChunk()
	default:
		// Take whole chunks, and a part of one more chunk for the remainder.
		wholeChunks := k / ChunkSize
		firstSlot := Index(a.appendChunks(wholeChunks)) << chunkShift
		if k %= ChunkSize; k > 0 {
			n = a.appendChunks(1)
			a.chunkStates[n].freshGen = max(a.firstGen, 1)
			a.linkChunk(n)
			a.takeFreshSlotsIn(n, k)
		}
		return firstSlot
	}
	return Index(n)<<chunkShift | Index(a.takeFreshSlotsIn(n, k))
}

// takeFreshSlotsIn takes the next k fresh slots of chunk n and returns the position of
// the first. The chunk must have k fresh slots.
func (a *Arena[T]) takeFreshSlotsIn(n uint32, k int) (pos uint16) {
	c := &a.chunkStates[n]
	pos = c.firstFreshPos
	c.firstFreshPos += uint16(k)
	c.usedCount += uint16(k)
	if n == a.spareChunk {
		a.spareChunk = 0
	}
	if c.usedCount == ChunkSize {
		a.unlinkChunk(n)
		if a.currentChunk == n {
			a.currentChunk = 0
		}
	}
	return pos
}

// chooseCurrentChunk finds or makes a chunk with room, and makes it the current one.
func (a *Arena[T]) chooseCurrentChunk() {
	if a.chunkSlots == nil {
		a.init()
	}
	if a.currentChunk = a.chunkStates[0].next; a.currentChunk == 0 {
		a.currentChunk = a.newChunk()
	}
}

// freeSlot frees slot i. m holds the slots of its chunk.
func (a *Arena[T]) freeSlot(i Index, m *slotArrays[T]) {
	a.liveCount--
	s := &m.headers[i&chunkMask]
	gen := s.gen() + 1
	if gen > maxGen {
		// No generation is left: the Ref of a new entry would equal an old one. So the
		// slot is retired: it counts as used for ever.
		s.packedFields = 0
		a.highestGen = maxGen
		return
	}
	n := uint32(i >> chunkShift)
	c := &a.chunkStates[n]
	s.setFree(gen)
	m.links[i&chunkMask].next = Index(c.firstFreePlus1)
	c.firstFreePlus1 = uint16(i&chunkMask) + 1
	usedCount := c.usedCount - 1
	c.usedCount = usedCount
	if usedCount >= ChunkSize/2 {
		if usedCount == ChunkSize-1 {
			a.linkChunk(n)
		}
		a.currentChunk = n
		return
	}
	if usedCount == 0 {
		a.freeChunk(n)
	}
}

// freeChunk gives back chunk n, which is empty, or keeps it as the spare.
func (a *Arena[T]) freeChunk(n uint32) {
	if a.spareChunk == 0 {
		// Move the chunk to the end of the ring, so that it is used last.
		a.unlinkChunk(n)
		a.insertChunk(n, a.chunkStates[0].prev)
		if a.currentChunk == n {
			a.currentChunk = a.chunkStates[0].next
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
	c := &a.chunkStates[n]
	highestGen := a.highestGenIn(n)
	a.highestGen = max(a.highestGen, highestGen)
	*c = chunkState{freshGen: highestGen}
	a.chunkSlots[n] = nil
	a.vacantChunks = append(a.vacantChunks, n)
}

// highestGenIn returns the highest generation of a slot in chunk n, which has no live
// slot.
func (a *Arena[T]) highestGenIn(n uint32) uint64 {
	c := &a.chunkStates[n]
	highestGen := c.freshGen
	for p := range a.chunkSlots[n].headers[:c.firstFreshPos] {
		highestGen = max(highestGen, a.chunkSlots[n].headers[p].gen())
	}
	return highestGen
}

// newChunk makes a chunk and links it. It reuses a vacant number if there is one.
func (a *Arena[T]) newChunk() uint32 {
	var n uint32
	if last := len(a.vacantChunks) - 1; last >= 0 {
		n = a.vacantChunks[last]
		a.vacantChunks = a.vacantChunks[:last]
		a.chunkSlots[n] = new(slotArrays[T])
	} else {
		n = a.appendChunks(1)
		a.chunkStates[n].freshGen = max(a.firstGen, 1)
	}
	a.linkChunk(n)
	return n
}

// appendChunks makes k chunks with consecutive numbers and returns the first.
func (a *Arena[T]) appendChunks(k int) uint32 {
	if a.chunkSlots == nil {
		a.init()
	}
	n := len(a.chunkSlots)
	if n+k > maxChunks {
		panic(fmt.Sprintf("bucket: the arena is full: %d entries", a.liveCount))
	}
	for range k {
		a.chunkSlots = append(a.chunkSlots, new(slotArrays[T]))
		a.chunkStates = append(a.chunkStates, chunkState{})
	}
	return uint32(n)
}

// linkChunk puts chunk n at the front of the ring of chunks with room.
func (a *Arena[T]) linkChunk(n uint32) { a.insertChunk(n, 0) }

// insertChunk links chunk n into the ring, after chunk prev.
func (a *Arena[T]) insertChunk(n, prev uint32) {
	next := a.chunkStates[prev].next
	a.chunkStates[n].prev, a.chunkStates[n].next = prev, next
	a.chunkStates[prev].next = n
	a.chunkStates[next].prev = n
}

func (a *Arena[T]) unlinkChunk(n uint32) {
	c := &a.chunkStates[n]
	a.chunkStates[c.prev].next = c.next
	a.chunkStates[c.next].prev = c.prev
}
