package wheel

import "github.com/tickless/tickless/internal/slab"

// An Entry is what a wheel keeps of one value, as [Wheel.At] and [Wheel.Scan] show it.
type Entry[T any] struct {
	ID ID
	Expired[T]
	// Place is that of the wheel's memory in which the entry is kept, Level the level
	// that it was last placed on.
	Place uint64
	Level int
}

// Places returns the number of places that the wheel has numbers for. Each entry has
// one, for as long as it is in the wheel.
func (w *Wheel[T]) Places() uint64 { return w.arena.Slots() }

// At returns the entry in a place, or false if there is none. With it a caller can
// look at a few entries of very many. O(1).
func (w *Wheel[T]) At(place uint64) (e Entry[T], ok bool) {
	i := slab.Index(place)
	if place >= w.arena.Slots() || !w.arena.Live(i) {
		return e, false
	}
	e = Entry[T]{w.arena.Ref(i), w.expired(i), place, int(w.arena.Place(i) >> w.slotBits)}
	e.Value = w.arena.Value(i)
	return e, true
}

// A Sample is what [Wheel.Sample] finds.
type Sample struct {
	Place uint64
	Due   int64 // as in Expired
	Level int   // as in Entry
	Tag   uint8
}

// Sample returns the entries in places chosen at random among all, for as many tries as
// out has room: each place is as likely as any other. intN returns a random number below
// n. out is overwritten.
func (w *Wheel[T]) Sample(out []Sample, intN func(n uint64) uint64) []Sample {
	const batch = 64
	var is [batch]slab.Index
	var looks [batch]slab.Glance
	places := w.arena.Slots()
	if places == 0 {
		return out[:0]
	}
	found := 0
	for tries := len(out); tries > 0; tries -= batch {
		n := min(tries, batch)
		for k := range n {
			is[k] = slab.Index(intN(places))
		}
		w.arena.Look(is[:n], looks[:n])
		for k, l := range looks[:n] {
			if !l.Live {
				continue
			}
			s := Sample{uint64(is[k]), l.Deadline, int(l.Place >> w.slotBits), l.Tag}
			if l.Grain > 0 {
				s.Due = w.ticks.time(w.ticks.ceilTo(l.Deadline, uint(l.Grain)))
			}
			out[found] = s
			found++
		}
	}
	return out[:found]
}

// Scan calls f for the entries in n places, from one on, and returns the place to go
// on from, or false if there are no more. The wheel may be used between two calls, so
// that a caller with a lock need not hold it for long: an entry that is there all the
// while is met once, one that comes or goes may be missed. f must not call the wheel.
// O(n + levels + memory given back).
func (w *Wheel[T]) Scan(place uint64, n int, f func(e Entry[T])) (next uint64, more bool) {
	for n > 0 {
		from, to := w.arena.Span(place, n)
		if place = to; from == to {
			break
		}
		n -= int(to - from)
		for ; from < to; from++ {
			if e, ok := w.At(from); ok {
				f(e)
			}
		}
	}
	return place, place < w.arena.Slots()
}

// Sweep removes those of the entries in n places, from one on, that have a tag and for
// whose payloads dead reports true: for an owner whose entries may lose their meaning
// without a call of Remove. It returns what Scan does. dead must not call the wheel.
// O(n + memory given back).
func (w *Wheel[T]) Sweep(place uint64, n int, tag uint8, dead func(v T) bool) (next uint64, more bool) {
	for n > 0 {
		from, to := w.arena.Span(place, n)
		if place = to; from == to {
			break
		}
		n -= int(to - from)
		for ; from < to; from++ {
			i := slab.Index(from)
			if w.arena.Live(i) && w.arena.Tag(i) == tag && dead(w.arena.Value(i)) {
				w.arena.Unlink(i)
				w.arena.Free(i)
			}
		}
	}
	return place, place < w.arena.Slots()
}

// LevelStats describes one level of a wheel.
type LevelStats struct {
	// Slot is the length of a slot, in the caller's unit of time.
	Slot int64
	// Queued says which slots are queued: have had entries since they last expired. The
	// first is the slot that the wheel's clock is in, the others follow in time.
	Queued []bool
	// Cascaded is how many times an entry of the level was placed again because its
	// bucket expired before it was due.
	Cascaded uint64
}

// Level returns what there is to say about level n at time now, or false if it was never
// made. It does not tell the wheel the time: now may be that of another clock.
// O(slots of the level).
func (w *Wheel[T]) Level(n int, now int64) (LevelStats, bool) {
	if n < 0 || n >= len(w.cascadedOn) {
		return LevelStats{}, false
	}
	s := LevelStats{
		Slot:     w.ticks.time(1<<(uint(n)*w.slotBits) + w.ticks.phase),
		Queued:   make([]bool, w.slotMask+1),
		Cascaded: w.cascadedOn[n],
	}
	if n < len(w.levels) {
		clock := w.clock
		if t := w.ticks.floor(now); t > clock && t < w.next && !w.isDraining() {
			clock = t
		}
		from := uint32(clock >> (uint(n) * w.slotBits))
		for i := range s.Queued {
			s.Queued[i] = w.levels[n].isQueued((from + uint32(i)) & w.slotMask)
		}
	}
	return s, true
}
