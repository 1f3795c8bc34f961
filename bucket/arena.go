package bucket

// An Arena holds entries, each with a deadline, a payload of type T, a small
// tag and a place, and the buckets that are threaded through them. Deadline,
// tag and place are the caller's to use: the arena only keeps them.
//
// The zero Arena is empty and ready to use. An Arena must not be copied after
// its first use.
type Arena[T any] struct {
	slab
	// values[n] are the payloads of chunk n: nil for sentinels' chunks.
	values []*[ChunkSize]T
}

// New makes an entry that is in no bucket. tag is at most [MaxTag].
func (a *Arena[T]) New(deadline int64, v T, tag uint8) Index {
	i, s, made := a.take()
	if made != 0 {
		a.grow(made)
	}
	a.values[i>>chunkShift][i&chunkMask] = v
	s.deadline = deadline
	s.setTag(tag)
	return i
}

// NewIn makes an entry at the end of bucket b. tag is at most [MaxTag], place at
// most [MaxPlace]. It does what New, SetPlace and PushBack do, but looks the slot
// up only once: BenchmarkStartStop.
func (a *Arena[T]) NewIn(b Bucket, deadline int64, v T, tag uint8, place uint32) Ref {
	i, s, made := a.take()
	if made != 0 {
		a.grow(made)
	}
	a.values[i>>chunkShift][i&chunkMask] = v
	gen := s.gen()
	s.setTag(tag)
	s.setPlace(place)
	s.deadline = deadline
	head := a.at(Index(b))
	last := head.prev
	s.next, s.prev = Index(b), last
	a.at(last).next = i
	head.prev = i
	return Ref{gen: gen, index: i}
}

// grow makes the payloads of chunk n.
func (a *Arena[T]) grow(n uint32) {
	for len(a.values) < len(a.dir) {
		a.values = append(a.values, nil)
	}
	a.values[n] = new([ChunkSize]T)
}

// Free ends the life of entry i, which must be live and in no bucket, and
// returns its payload. The arena keeps no reference to the payload.
func (a *Arena[T]) Free(i Index) T { return a.free(i, a.at(i)) }

// Remove takes the entry that r names out of the bucket that it is in and frees
// it. It reports false if that entry was freed before, or if r is zero. It does
// what Find, Unlink and Free do, but looks the slot up only once:
// BenchmarkStartStop.
func (a *Arena[T]) Remove(r Ref) (v T, ok bool) {
	n := int(r.index >> chunkShift)
	if n >= len(a.dir) || a.dir[n] == nil || r.gen == 0 {
		return v, false
	}
	s := &a.dir[n][r.index&chunkMask]
	if s.gen() != r.gen {
		return v, false
	}
	a.at(s.prev).next = s.next
	a.at(s.next).prev = s.prev
	return a.free(r.index, s), true
}

func (a *Arena[T]) free(i Index, s *slot) T {
	p := &a.values[i>>chunkShift][i&chunkMask]
	v := *p
	var zero T
	*p = zero
	if gone := a.give(i, s); gone != 0 {
		a.values[gone] = nil
	}
	return v
}

// Value returns the payload of the live entry i.
func (a *Arena[T]) Value(i Index) T { return a.values[i>>chunkShift][i&chunkMask] }

// Ref returns the name of live entry i's present life.
func (a *slab) Ref(i Index) Ref { return Ref{gen: a.at(i).gen(), index: i} }

// Find returns the entry that r names. It reports false if that entry was
// freed, or if r is zero.
func (a *slab) Find(r Ref) (Index, bool) {
	n := int(r.index >> chunkShift)
	if n >= len(a.dir) || a.dir[n] == nil || r.gen == 0 {
		return 0, false
	}
	// A Ref of this arena that names a free slot has an older generation than
	// the slot, and a sentinel's generation is zero.
	return r.index, a.dir[n][r.index&chunkMask].gen() == r.gen
}

// Deadline returns entry i's deadline.
func (a *slab) Deadline(i Index) int64 { return a.at(i).deadline }

// SetDeadline sets entry i's deadline.
func (a *slab) SetDeadline(i Index, deadline int64) { a.at(i).deadline = deadline }

// Tag returns the tag that entry i was made with.
func (a *slab) Tag(i Index) uint8 { return a.at(i).tag() }

// Place returns entry i's place, zero until it is set.
func (a *slab) Place(i Index) uint32 { return a.at(i).place() }

// SetPlace sets entry i's place, at most [MaxPlace].
func (a *slab) SetPlace(i Index, place uint32) { a.at(i).setPlace(place) }

// Len returns the number of live entries.
func (a *slab) Len() int { return a.live }

// Chunks returns the number of chunks that memory is held for, without those
// of buckets' sentinels.
func (a *Arena[T]) Chunks() int {
	n := 0
	for _, v := range a.values {
		if v != nil {
			n++
		}
	}
	return n
}
