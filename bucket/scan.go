package bucket

// Slots returns a bound: the Index of every entry is less than Slots.
func (a *Arena[T]) Slots() uint64 { return uint64(len(a.memories)) << chunkShift }

// Live reports whether i is the Index of an entry. To find all entries, a caller tries
// every Index below Slots. O(1).
func (a *Arena[T]) Live(i Index) bool {
	n := i >> chunkShift
	if uint64(i) >= a.Slots() || a.memories[n] == nil || uint16(i&chunkMask) >= a.chunks[n].firstFresh {
		return false
	}
	s := &a.memories[n].bodies[i&chunkMask]
	return s.gen() != 0 && !s.isFree()
}

// Span finds the next slots in memory, at or after index i. It returns their range, from
// <= index < to, of at most limit indexes. If no slots remain, from and to both equal
// Slots.
func (a *Arena[T]) Span(i uint64, limit int) (from, to uint64) {
	for n := i >> chunkShift; n < uint64(len(a.memories)); n++ {
		if a.memories[n] != nil {
			from = max(i, n<<chunkShift)
			return from, min(from+uint64(limit), (n+1)<<chunkShift)
		}
	}
	return a.Slots(), a.Slots()
}
