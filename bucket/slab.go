package bucket

import "fmt"

// ChunkSize is the number of slots in a chunk, the unit in which memory is
// taken and given back.
const ChunkSize = 1 << chunkShift

const (
	chunkShift = 9
	chunkMask  = ChunkSize - 1
	maxChunks  = 1 << (32 - chunkShift)
)

// slots is the memory of a chunk's slots. It holds no pointers.
type slots [ChunkSize]slot

// chunk is what the slab knows about a chunk besides its slots.
type chunk struct {
	// gen is the generation that the chunk's fresh slots start with.
	gen uint64
	// used counts live and retired slots: there is room while it is less than
	// ChunkSize. fresh is the first slot never used.
	used, fresh uint16
	// free heads the list of freed slots, as position+1; 0 is the end.
	free uint16
	// prev and next link the chunks that have room. Chunk 0 is the ring's
	// sentinel and never holds an entry.
	prev, next uint32
}

// slab is the arena less its payloads, so that its code exists once for all
// payload types.
//
// Which chunk the next entry goes to decides both speed and memory. A slot that
// was just freed is still in the processor's cache, so a chunk that is at least
// half full becomes the current one when it loses an entry. One that is emptier
// does not: were its slots refilled at once too, a thousand entries left over
// from a million would pin every chunk for ever, each in one of its own.
type slab struct {
	// dir maps a chunk's number to its slots, nil while the chunk is given
	// back. chunks runs in parallel.
	dir    []*slots
	chunks []chunk
	// vacant lists the numbers of given-back chunks, for reuse.
	vacant []uint32
	// current is the chunk that entries are taken from; 0 if none has room.
	current uint32
	// spare is the one empty chunk that is kept; 0 if there is none.
	spare uint32
	// Buckets' sentinels come from chunks of their own, which have no payloads
	// and are never given back: sentinel is the next unused one, up to
	// sentinelEnd.
	sentinel, sentinelEnd Index
	live                  int
}

func (a *slab) at(i Index) *slot { return &a.dir[i>>chunkShift][i&chunkMask] }

// init makes chunk 0, whose slots do not exist: index 0 means none.
func (a *slab) init() {
	a.dir = append(a.dir, nil)
	a.chunks = append(a.chunks, chunk{})
}

// take returns a slot, live with its next generation, tag and place zero.
// made is the number of the chunk that had to be made for it, else 0.
func (a *slab) take() (i Index, s *slot, made uint32) {
	if a.current == 0 {
		made = a.nextChunk()
	}
	n := a.current
	c := &a.chunks[n]
	pos := c.fresh
	if c.free != 0 {
		pos = c.free - 1
		s = &a.dir[n][pos&chunkMask]
		c.free = uint16(s.next)
		s.live(s.gen()) // raised when it was freed
	} else {
		c.fresh++
		s = &a.dir[n][pos&chunkMask]
		s.live(c.gen)
	}
	a.live++
	c.used++
	if c.used == ChunkSize {
		a.unlinkChunk(n)
		a.current = 0
	} else if n == a.spare {
		a.spare = 0
	}
	return Index(n)<<chunkShift | Index(pos), s, made
}

// nextChunk finds or makes a chunk with room, and makes it the current one. It
// returns its number if it was made, else 0.
func (a *slab) nextChunk() (made uint32) {
	if a.dir == nil {
		a.init()
	}
	if a.current = a.chunks[0].next; a.current == 0 {
		made = a.newChunk()
		a.current = made
	}
	return made
}

// give frees slot i, which is s. It reports the chunk that was given back, else
// 0.
func (a *slab) give(i Index, s *slot) (gone uint32) {
	a.live--
	gen := s.gen() + 1
	if gen > maxGen {
		// Used up: another life would answer to a Ref of an older one. The
		// slot counts as used for ever, and so its chunk stays.
		s.word = 0
		return 0
	}
	n := uint32(i >> chunkShift)
	c := &a.chunks[n]
	s.live(gen)
	s.next = Index(c.free)
	c.free = uint16(i&chunkMask) + 1
	used := c.used - 1
	c.used = used
	if used >= ChunkSize/2 {
		if used == ChunkSize-1 {
			a.linkChunk(n)
		}
		a.current = n
		return 0
	}
	if used == 0 {
		return a.emptied(n)
	}
	return 0
}

// emptied gives back chunk n, or keeps it as the spare.
func (a *slab) emptied(n uint32) (gone uint32) {
	if a.spare == 0 {
		// To the back of the ring: the last to be taken from.
		a.unlinkChunk(n)
		a.insertChunk(n, a.chunks[0].prev)
		if a.current == n {
			a.current = a.chunks[0].next
		}
		a.spare = n
		return 0
	}
	a.unlinkChunk(n)
	if a.current == n {
		a.current = 0
	}
	// The next chunk of this number goes on above the highest generation of
	// this one, so that a Ref from now stays stale then.
	c := &a.chunks[n]
	high := c.gen
	for p := range a.dir[n][:c.fresh] {
		high = max(high, a.dir[n][p].gen())
	}
	*c = chunk{gen: high}
	a.dir[n] = nil
	a.vacant = append(a.vacant, n)
	return n
}

// newChunk makes a chunk, in a vacant number if there is one, and links it.
func (a *slab) newChunk() uint32 {
	var n uint32
	if last := len(a.vacant) - 1; last >= 0 {
		n = a.vacant[last]
		a.vacant = a.vacant[:last]
		a.dir[n] = new(slots)
	} else {
		n = a.appendChunks(1)
		a.chunks[n].gen = 1
	}
	a.linkChunk(n)
	return n
}

// appendChunks makes k chunks with consecutive numbers and returns the first.
func (a *slab) appendChunks(k int) uint32 {
	if a.dir == nil {
		a.init()
	}
	n := len(a.dir)
	if n+k > maxChunks {
		panic(fmt.Sprintf("bucket: the arena is full: %d entries", a.live))
	}
	for range k {
		a.dir = append(a.dir, new(slots))
		a.chunks = append(a.chunks, chunk{})
	}
	return uint32(n)
}

// linkChunk puts chunk n at the front of the ring of chunks with room.
func (a *slab) linkChunk(n uint32) { a.insertChunk(n, 0) }

// insertChunk links chunk n behind chunk at.
func (a *slab) insertChunk(n, at uint32) {
	next := a.chunks[at].next
	a.chunks[n].prev, a.chunks[n].next = at, next
	a.chunks[at].next = n
	a.chunks[next].prev = n
}

func (a *slab) unlinkChunk(n uint32) {
	c := &a.chunks[n]
	a.chunks[c.prev].next = c.next
	a.chunks[c.next].prev = c.prev
}
