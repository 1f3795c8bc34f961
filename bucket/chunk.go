package bucket

import "fmt"

// ChunkSize is the number of slots in a chunk, the unit in which memory is
// taken and given back.
const ChunkSize = 1 << chunkShift

const (
	// With a pointer for a payload a chunk of 1024 slots takes 32 kB: just too much
	// for the allocator's size classes, and so whole pages. One of 512 would be
	// rounded up by an eighth, for the 8 bytes of the header that comes with
	// pointers.
	chunkShift = 10
	chunkMask  = ChunkSize - 1
	maxChunks  = 1 << (indexBits - chunkShift)
)

// chunk is what the arena knows about a chunk besides its slots.
type chunk struct {
	// gen is the generation that the chunk's fresh slots start with, zero if the
	// chunk never had any: all of its slots are buckets' sentinels.
	gen uint64
	// used counts the slots that are live, retired, or buckets' sentinels: there is
	// room while it is less than ChunkSize. fresh is the first slot never used.
	used, fresh uint16
	// free heads the list of freed slots, as position+1; 0 is the end.
	free uint16
	// prev and next link the chunks that have room. Chunk 0 is the ring's
	// sentinel and never holds an entry.
	prev, next uint32
}

func (a *Arena[T]) body(i Index) *body { return &a.dir[i>>chunkShift].bodies[i&chunkMask] }

func (a *Arena[T]) link(i Index) *link { return &a.dir[i>>chunkShift].links[i&chunkMask] }

// init makes chunk 0, whose slots do not exist: index 0 means none.
func (a *Arena[T]) init() {
	a.dir = append(a.dir, nil)
	a.chunks = append(a.chunks, chunk{})
}

// # Which chunk the next entry goes to
//
// That decides both speed and memory. A slot that was just freed is still in the
// processor's cache, so a chunk that is at least half full becomes the current
// one when it loses an entry. One that is emptier does not: were its slots
// refilled at once too, a thousand entries left over from a million would pin
// every chunk for ever, each in one of its own.

// take returns a slot, live with its next generation, tag and place zero, and the
// memory of its chunk.
func (a *Arena[T]) take() (i Index, m *memory[T]) {
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

// takeFresh returns the first of k consecutive slots that were never used, for
// sentinels: these have no generation, and their chunk stays. It goes on to take
// entries, so that a few of them and their buckets share a chunk. O(chunks with room).
func (a *Arena[T]) takeFresh(k int) Index {
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
		// Chunks of nothing else, and one for the rest.
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

// useFresh takes k fresh slots of chunk n, which has so many, and returns the first.
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

// give frees slot i, which is in m.
func (a *Arena[T]) give(i Index, m *memory[T]) {
	a.live--
	s := &m.bodies[i&chunkMask]
	gen := s.gen() + 1
	if gen > maxGen {
		// The generations are used up: a new life would answer to the Ref of an older
		// one. The slot counts as used for ever, and so its chunk stays.
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

// emptied gives back chunk n, or keeps it as the spare.
func (a *Arena[T]) emptied(n uint32) {
	if a.spare == 0 {
		// To the back of the ring: the last to be taken from.
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
	// The next chunk of this number goes on above the highest generation of
	// this one, so that a Ref from now stays stale then.
	c := &a.chunks[n]
	high := a.highest(n)
	a.high = max(a.high, high)
	*c = chunk{gen: high}
	a.dir[n] = nil
	a.vacant = append(a.vacant, n)
}

// highest returns the highest generation in chunk n, whose slots are all free, unless
// they are retired or sentinels.
func (a *Arena[T]) highest(n uint32) uint64 {
	c := &a.chunks[n]
	high := c.gen
	for p := range a.dir[n].bodies[:c.fresh] {
		high = max(high, a.dir[n].bodies[p].gen())
	}
	return high
}

// newChunk makes a chunk, in a vacant number if there is one, and links it.
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

// insertChunk links chunk n behind chunk at.
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
