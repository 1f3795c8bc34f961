package bucket

// An Arena stores entries and buckets. A bucket is a list of entries. An entry has a
// deadline, a payload of type T, and three small numbers for the caller's own use: its
// tag, grain and place.
//
// The zero Arena is empty and ready to use. An Arena must not be copied after its first
// use.
type Arena[T any] struct {
	// chunkSlots[n] holds the slots of chunk n. It is nil if the chunk was given back,
	// and for chunk 0, which has no slots. chunkStates[n] is the chunk's state.
	chunkSlots  []*slotArrays[T]
	chunkStates []chunkState
	// vacantChunks lists the numbers of chunks that were given back. New chunks reuse
	// them.
	vacantChunks []uint32
	// currentChunk is the chunk from which New takes slots; 0 if New must choose one
	// first.
	currentChunk uint32
	// spareChunk is the empty chunk that the arena keeps; 0 if there is none.
	spareChunk uint32
	// liveCount is the number of entries.
	liveCount int
	// Each slot has a generation: see slot.go. In a chunk with a new number, slots start
	// at firstGen; 0 means 1. highestGen is the highest generation of a slot that was
	// given back or retired.
	firstGen, highestGen uint64
}

// New makes an entry with tag, grain and place zero. The entry is in no bucket.
func (a *Arena[T]) New(deadline int64, v T) Index {
	i, m := a.takeSlot()
	m.values[i&chunkMask] = v
	m.headers[i&chunkMask].deadline = deadline
	m.links[i&chunkMask] = link{i, i}
	return i
}

// NewIn makes an entry at the end of bucket b. It is faster than New, SetGrain, SetPlace
// and PushBack together. The limits of tag, grain and place are [MaxTag], [MaxGrain] and
// [MaxPlace].
func (a *Arena[T]) NewIn(b Bucket, deadline int64, v T, tag uint8, grain uint, place uint32) Ref {
	i, m := a.takeSlot()
	m.values[i&chunkMask] = v
	s := &m.headers[i&chunkMask]
	gen := s.gen()
	s.packedFields |= uint64(grain&freeGrain)<<grainShift | uint64(tag&MaxTag)<<tagShift | uint64(place)&placeMask
	s.deadline = deadline
	a.pushBack(b, i, &m.links[i&chunkMask])
	return refOf(gen, i)
}

// Free frees entry i, which must be live and in no bucket, and returns its payload. The
// arena keeps no reference to the payload.
func (a *Arena[T]) Free(i Index) T { return a.freeEntry(i, a.chunkSlots[i>>chunkShift]) }

// Remove takes r's entry out of its bucket, if it is in one, and frees it. It reports
// false if the entry was already freed, or if r is zero.
func (a *Arena[T]) Remove(r Ref) (v T, ok bool) {
	i, ok := a.Find(r)
	if !ok {
		return v, false
	}
	m := a.chunkSlots[i>>chunkShift]
	a.unlink(&m.links[i&chunkMask])
	return a.freeEntry(i, m), true
}

func (a *Arena[T]) freeEntry(i Index, m *slotArrays[T]) T {
	p := &m.values[i&chunkMask]
	v := *p
	var zero T
	*p = zero
	a.freeSlot(i, m)
	return v
}

// Value returns the payload of the live entry i.
func (a *Arena[T]) Value(i Index) T { return a.chunkSlots[i>>chunkShift].values[i&chunkMask] }

// Ref returns entry i's Ref, which stays valid until the entry is freed.
func (a *Arena[T]) Ref(i Index) Ref { return refOf(a.header(i).gen(), i) }

// Find returns the entry that r refers to. It reports false if the entry was freed, or if
// r is zero.
func (a *Arena[T]) Find(r Ref) (Index, bool) {
	i, gen := r.index(), r.gen()
	n := int(i >> chunkShift)
	if n >= len(a.chunkSlots) || a.chunkSlots[n] == nil || gen == 0 {
		return 0, false
	}
	// The generations differ if the slot is free, because Free has incremented its
	// generation. They also differ if the slot is a bucket's sentinel: its generation is
	// zero.
	return i, a.chunkSlots[n].headers[i&chunkMask].gen() == gen
}

// Deadline returns entry i's deadline.
func (a *Arena[T]) Deadline(i Index) int64 { return a.header(i).deadline }

// SetDeadline sets entry i's deadline.
func (a *Arena[T]) SetDeadline(i Index, deadline int64) { a.header(i).deadline = deadline }

// Tag returns the tag that NewIn gave to entry i, or zero for an entry made by New.
func (a *Arena[T]) Tag(i Index) uint8 { return a.header(i).tag() }

// Grain returns entry i's grain. The grain is zero until it is set.
func (a *Arena[T]) Grain(i Index) uint { return a.header(i).grain() }

// SetGrain sets entry i's grain, at most [MaxGrain].
func (a *Arena[T]) SetGrain(i Index, grain uint) { a.header(i).setGrain(grain) }

// Place returns entry i's place, such as the level and slot of its bucket. The place is
// zero until it is set.
func (a *Arena[T]) Place(i Index) uint32 { return a.header(i).place() }

// SetPlace sets entry i's place, at most [MaxPlace].
func (a *Arena[T]) SetPlace(i Index, place uint32) { a.header(i).setPlace(place) }

// Len returns the number of entries.
func (a *Arena[T]) Len() int { return a.liveCount }

// Release gives back all memory. All Refs become stale, and all buckets become invalid.
// Release reports false and does nothing if the arena has entries. It also refuses once a
// slot has been used 2^35 times, so that Refs never run out. O(chunks in memory).
func (a *Arena[T]) Release() bool {
	if a.liveCount > 0 {
		return false
	}
	highestGen := max(a.firstGen, a.highestGen)
	for n := range a.chunkSlots {
		if a.chunkSlots[n] != nil && a.chunkStates[n].freshGen != 0 {
			highestGen = max(highestGen, a.highestGenIn(uint32(n)))
		}
	}
	if highestGen > maxGen/2 {
		return false // too few generations would remain: all slots would start from highestGen
	}
	*a = Arena[T]{firstGen: highestGen}
	return true
}

// Chunks returns the number of chunks in memory. It does not count chunks that contain
// nothing but buckets.
func (a *Arena[T]) Chunks() int {
	n := 0
	for i := range a.chunkSlots {
		if a.chunkSlots[i] != nil && a.chunkStates[i].freshGen != 0 {
			n++
		}
	}
	return n
}
