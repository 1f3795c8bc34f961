package bucket

// Slots returns a number that the Index of every entry is below.
func (a *Arena[T]) Slots() uint64 { return uint64(len(a.dir)) << chunkShift }

// Live reports whether i names an entry. A caller finds all entries by trying every Index
// below Slots. O(1).
func (a *Arena[T]) Live(i Index) bool {
	n := i >> chunkShift
	if uint64(i) >= a.Slots() || a.dir[n] == nil || uint16(i&chunkMask) >= a.chunks[n].fresh {
		return false
	}
	s := &a.dir[n].bodies[i&chunkMask]
	return s.gen() != 0 && !s.isFree()
}

// Span returns the next range of at most that many indexes, i or above, whose slots are in
// memory: it skips chunks that were given back. If no slots are left, both ends are Slots.
func (a *Arena[T]) Span(i uint64, most int) (from, to uint64) {
	for n := i >> chunkShift; n < uint64(len(a.dir)); n++ {
		if a.dir[n] != nil {
			from = max(i, n<<chunkShift)
			return from, min(from+uint64(most), (n+1)<<chunkShift)
		}
	}
	return a.Slots(), a.Slots()
}
