package timer

import (
	"math"

	"github.com/tickless/tickless/timingwheel"
)

// # When dead entries go
//
// A dead entry goes when it falls due. Before that, all go when no live ones are left, so
// that an empty Scheduler sleeps. And they are swept when they are sweepLeast and a
// quarter of the shard's entries at the least, as the runtime does with its own: a batch
// by each Stop that comes then, until they are fewer. A pass over the shard takes away as
// many as it has come for; so this is some entries' worth for each Stop, in holds of the
// lock no longer than for a batch that expires.

// sweepLeast is how many dead entries there are before they are swept.
const sweepLeast = 256

// buryLocked looks after the dead once a Stop has found them many, or nothing else: it
// was t that it has stopped.
func (sh *shard) buryLocked(t *Timer) {
	t.mu.Lock()
	if t.phase.Load() == dead && sh.deadLocked() == sh.wheel.Len() {
		// A Timer that is alone leaves at once.
		id := t.entry.Load().id(t)
		sh.leaveLocked(t)
		sh.wheel.Remove(id)
	}
	t.mu.Unlock()
	sh.tidyLocked()
	sh.noteEmptiedLocked(true)
}

// tidyLocked is called when entries have left, or become dead.
func (sh *shard) tidyLocked() {
	sh.shared.cutLocked()
	sh.markLocked() // first: who is not counted below looks at this
	switch n, entries := sh.deadLocked(), sh.wheel.Len(); {
	case n == 0:
	case n >= entries:
		sh.entries.place = 0
		sh.sweepLocked(math.MaxInt)
	case n >= sh.manyDeadLocked():
		sh.sweepLocked(batchSize)
	}
	sh.markLocked()
}

// manyDeadLocked returns how many dead entries are to be swept: fewer than a quarter where
// it may take some more to notice.
func (sh *shard) manyDeadLocked() int {
	many := max(sh.s.config.sweepLeast, sh.wheel.Len()/4)
	if sh.shared.others() != nil {
		many -= many / overshoot
	}
	return many
}

// markLocked has the next Stop look after the dead by which they become many, or all
// that is left.
func (sh *shard) markLocked() {
	many, length := sh.manyDeadLocked(), sh.wheel.Len()
	n := many
	if sh.entries.n == length {
		n = min(n, length)
	}
	sh.shared.markLocked(int64(sh.entries.gone)+int64(n), many, length)
}

// sweepLocked removes the dead entries in so many places of the wheel.
func (sh *shard) sweepLocked(places int) {
	place, more := sh.wheel.Sweep(sh.entries.place, places, tagEntry, func(p payload) bool {
		t := sh.ownerLocked(p.entry())
		if t == nil {
			return true
		}
		if t.phase.Load() == pending {
			return false
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		return sh.leftDeadLocked(t)
	})
	if !more {
		place = 0
	}
	sh.entries.place = place
}

// leftDeadLocked notes that a Timer's entry leaves the wheel, if it is dead. The Timer is
// locked.
func (sh *shard) leftDeadLocked(t *Timer) bool {
	switch t.phase.Load() {
	case dead, cut:
		sh.leaveLocked(t)
		return true
	}
	return false
}

// handBackEntriesLocked settles all Timers with entries in a wheel that is handed back,
// and returns how many of these are dead.
func (sh *shard) handBackEntriesLocked(w *timingwheel.Wheel[payload]) (deads int) {
	if sh.entries.n == 0 {
		return 0
	}
	before := sh.entries.gone
	w.Each(func(x timingwheel.Entry[payload]) {
		if x.Tag != tagEntry {
			return
		}
		t := sh.ownerLocked(x.Value.entry())
		if t == nil {
			return
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if !sh.leftDeadLocked(t) {
			sh.entries.n--
			t.phase.Store(back)
			t.word = 0 // no id
		}
	})
	sh.shared.forgetLocked()
	return int(sh.entries.gone - before)
}

// handedBack makes of an entry of a closed Scheduler the timer that was handed back, or
// reports false if that was dead.
func (e *timerEntry) handedBack(x *timingwheel.Expired[payload]) bool {
	t := e.t.Load()
	if t == nil || t.phase.Load() != back {
		return false
	}
	x.Value, x.Tag, x.Deadline = t.p, t.tag, t.deadline
	return true
}

// lenLocked returns the number of pending timers.
func (sh *shard) lenLocked() int { return max(0, sh.wheel.Len()-sh.deadLocked()) }

// deadLocked returns the number of dead entries: never too few, and exactly, unless
// others stop and reset meanwhile. It is no more than all entries.
func (sh *shard) deadLocked() int {
	return min(int(sh.shared.dead())-int(sh.entries.gone), sh.entries.n)
}

func (sh *shard) addEntriesLocked(st *Stats) {
	st.Started += sh.shared.revived()
	st.Stopped += sh.shared.stopped()
}
