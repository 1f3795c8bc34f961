package slab

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

// A Glance is what can be seen of a slot in one cache line: all of an entry but its
// payload and its bucket.
type Glance struct {
	Deadline int64
	Place    uint32
	Grain    uint8
	Tag      uint8
	Live     bool // it is an entry
}

// Look fills out with a glance at each of the slots is, which are below [Arena.Slots].
// For slots far apart it is several times faster than to look at one after the other: the
// processor loads many cache lines at a time.
func (a *Arena[T]) Look(is []Index, out []Glance) {
	// What is done with a line comes after all have been asked for: the shorter the loop
	// that loads them, the more of them the processor has under way.
	var bodies [64]body
	for ; len(is) > 0; is, out = is[min(len(is), len(bodies)):], out[min(len(is), len(bodies)):] {
		n := min(len(is), len(bodies))
		for k, i := range is[:n] {
			if m := a.dir[i>>chunkShift]; m != nil {
				bodies[k&63] = m.bodies[i&chunkMask] // of generation 0 if it was never used
			} else {
				bodies[k&63] = body{}
			}
		}
		for k := range n {
			b := &bodies[k&63]
			out[k] = Glance{b.deadline, b.place(), uint8(b.grain()), b.tag(), b.gen() != 0 && !b.isFree()}
		}
	}
}

// Span returns the first index from i on whose slot is in memory, and one behind it such
// that all in between are, most of them at the most. Both are Slots if there is none.
// Chunks that were given back are passed over at once.
func (a *Arena[T]) Span(i uint64, most int) (from, to uint64) {
	for n := i >> chunkShift; n < uint64(len(a.dir)); n++ {
		if a.dir[n] != nil {
			from = max(i, n<<chunkShift)
			return from, min(from+uint64(most), (n+1)<<chunkShift)
		}
	}
	return a.Slots(), a.Slots()
}
