package bucket

// Slots returns a bound: the Index of every entry is less than Slots.
func (a *Arena[T]) Slots() uint64 { return uint64(len(a.chunkSlots)) << chunkShift }

// Live reports whether i is the Index of an entry. To find all entries, a caller tries
// every Index below Slots. O(1).
func (a *Arena[T]) Live(i Index) bool {
	n := i >> chunkShift
	if uint64(i) >= a.Slots() || a.chunkSlots[n] == nil || uint16(i&chunkMask) >= a.chunkStates[n].firstFreshPos {
		return false
	}
	s := &a.chunkSlots[n].headers[i&chunkMask]
	return s.gen() != 0 && !s.isFree()
}

// Span returns a range of slots, from <= index < to: the first at or after index i whose
// memory has not been given back. It has at most limit slots. If there are no such slots,
// from and to are both the result of [Arena.Slots].
func (a *Arena[T]) Span(i uint64, limit int) (from, to uint64) {
	for n := i >> chunkShift; n < uint64(len(a.chunkSlots)); n++ {
		if a.chunkSlots[n] != nil {
			from = max(i, n<<chunkShift)
			return from, min(from+uint64(limit), (n+1)<<chunkShift)
		}
	}
	return a.Slots(), a.Slots()
}
