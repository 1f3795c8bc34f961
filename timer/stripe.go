package timer

import (
	"math"
	"sync/atomic"
	"unsafe"
)

// A stripe is what Stops and Resets of a shard's Timers write without its lock. A shard
// has one. Once it has stripedFrom Timers with entries it has several, each in a cache
// line of its own, of which a goroutine uses one: Timers stay on the shard that made
// them, but are stopped and reset on all procs. (Counters in stripes are known from
// java.util.concurrent's LongAdder.)
type stripe struct {
	// stopped and revived count the Timers that became dead, and pending again. They
	// change with the Timer's mu held. A Timer may be counted by one stripe, and by another
	// when it is pending again.
	stopped, revived atomic.Uint64
	// last is the Timer that was stopped last, and is yet to be cut.
	last atomic.Pointer[Timer]
	// look is how large stopped less revived may become before whoever stops another
	// counts the dead of all stripes.
	look atomic.Int64
}

type paddedStripe struct {
	stripe
	_ [64 - unsafe.Sizeof(stripe{})]byte
}

const (
	// stripedFrom is from how many entries on a shard has manyStripes, so that two
	// goroutines share one seldom.
	stripedFrom = 1024
	manyStripes = 16
)

// sharedEntries are read and written without the shard's lock.
type sharedEntries struct {
	// mark is how many Timers may be dead, with those whose entries have gone, before
	// whoever stops another has to look after them: see tidyLocked.
	mark atomic.Int64
	// more are the stripes that are used in place of the first, once there are any. They
	// are made with the shard's lock held.
	more atomic.Pointer[[manyStripes]paddedStripe]
	// step is by how much the count of a stripe may grow before all are counted; 0 if each
	// Stop has to count them.
	step atomic.Int64

	first stripe
}

// own returns the stripe of the goroutine that calls it: by the address of its stack,
// which tells it from others without a visit to memory.
func (e *sharedEntries) own() *stripe {
	more := e.more.Load()
	if more == nil {
		return &e.first
	}
	var here byte
	hash := uint64(uintptr(unsafe.Pointer(&here))>>11) * 0x9e3779b97f4a7c15 // Knuth's multiplicative hash
	return &more[hash/(math.MaxUint64/manyStripes+1)].stripe
}

// others returns the stripes but for the first.
func (e *sharedEntries) others() []paddedStripe {
	if more := e.more.Load(); more != nil {
		return more[:]
	}
	return nil
}

// revived returns how many Timers became pending again.
func (e *sharedEntries) revived() uint64 {
	n := e.first.revived.Load()
	others := e.others()
	for i := range others {
		n += others[i].revived.Load()
	}
	return n
}

// stopped returns how many Timers became dead.
func (e *sharedEntries) stopped() uint64 {
	n := e.first.stopped.Load()
	others := e.others()
	for i := range others {
		n += others[i].stopped.Load()
	}
	return n
}

// dead returns how many Timers became dead, less those that became pending again: never
// too few, and exactly unless others stop and reset meanwhile.
func (e *sharedEntries) dead() int64 {
	revived := e.revived() // first, so that the difference is not negative
	return int64(e.stopped() - revived)
}

// stop counts a Timer that became dead, and reports whether there are as many as mark.
func (e *sharedEntries) stop() (crowded bool) {
	s := e.own()
	n := int64(s.stopped.Add(1) - s.revived.Load())
	if e.more.Load() == nil {
		return n >= e.mark.Load()
	}
	step := e.step.Load()
	if look := s.look.Load(); step > 0 && look-2*step <= n && n < look {
		return false
	}
	if e.dead() >= e.mark.Load() {
		return true // and so does the next, until they are fewer
	}
	s.look.Store(n + step)
	return false
}

// markLocked has the next Stop by which as many as mark are dead look after them. many
// is what manyDeadLocked returns, length how many are in the wheel: if they are few, each
// Stop counts all, since all may be dead.
func (e *sharedEntries) markLocked(mark int64, many, length int) {
	var step int
	if others := e.others(); others != nil && 2*many <= length {
		step = many / (2 * overshoot * len(others))
	}
	if mark != e.mark.Load() {
		e.mark.Store(mark)
	}
	if int64(step) != e.step.Load() {
		e.step.Store(int64(step))
	}
}

// overshoot is what share of the mark, at the most, more are dead before that is noticed:
// on each stripe two steps.
const overshoot = 8

// stripeLocked makes the stripes, if there is more than one proc.
func (e *sharedEntries) stripeLocked(procs int) {
	if procs > 1 && e.more.Load() == nil {
		e.more.Store(new([manyStripes]paddedStripe))
	}
}

// cutLocked cuts the Timers that were stopped last.
func (e *sharedEntries) cutLocked() {
	e.first.cut()
	others := e.others()
	for i := range others {
		others[i].cut()
	}
}

// forgetLocked is cutLocked for entries that are no more.
func (e *sharedEntries) forgetLocked() {
	e.first.last.Store(nil)
	others := e.others()
	for i := range others {
		others[i].last.Store(nil)
	}
}

// cut cuts the Timer that was stopped last.
func (s *stripe) cut() {
	if last := s.last.Load(); last != nil && s.last.CompareAndSwap(last, nil) {
		last.cut()
	}
}
