package bucket

// Slots returns the number of slots that the arena has numbers for: an Index below it
// may name an entry, and none from it on does.
func (a *Arena[T]) Slots() uint64 { return uint64(len(a.dir)) << chunkShift }

// Live reports whether i names an entry. It makes the arena's entries accessible by
// number, to a caller who tries all below Slots, or some of them at random. O(1).
func (a *Arena[T]) Live(i Index) bool {
	n := i >> chunkShift
	if uint64(i) >= a.Slots() || a.dir[n] == nil || uint16(i&chunkMask) >= a.chunks[n].fresh {
		return false
	}
	s := &a.dir[n].bodies[i&chunkMask]
	return s.gen() != 0 && !s.isFree()
}

// Span returns a range of at most so many indexes, from i on, whose slots are in memory.
// It passes over chunks that were given back. Both ends are Slots if there is none left.
func (a *Arena[T]) Span(i uint64, most int) (from, to uint64) {
	for n := i >> chunkShift; n < uint64(len(a.dir)); n++ {
		if a.dir[n] != nil {
			from = max(i, n<<chunkShift)
			return from, min(from+uint64(most), (n+1)<<chunkShift)
		}
	}
	return a.Slots(), a.Slots()
}
