package alarm

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"
)

// A hub calls the functions of all alarms of a process when they are due, which is called
// a ring. It is in one of these states, which armLocked chooses whenever the first moment
// has changed:
//
//	state   first moment   descriptor           timers
//	idle    none           closed after linger  set for the end of the linger, or not
//	far     beyond near    closed after linger  set for the moment
//	exact   near           set for the moment   guards: 4 to 20 ms behind it, or half of that
//	busy    near           closed after linger  set for the moment
//
// The descriptor is late if procs are busy, or if its goroutine is inside a slow
// function. After two late rings in a row, or one by the guards, the state is busy for
// calmAfter.
//
// While rings are frequent, the descriptor is set for no earlier than apart after the
// last ring.
//
// The goroutine that finds the first moment passed is that of a timer, or the one that
// waits for the descriptor. It removes all due alarms, arms the hub for the next, and
// calls the functions without the lock: the first function itself, the others on new
// goroutines. So a function that never returns delays no other.
type hub struct {
	start time.Time // moments count from start

	mu sync.Mutex
	// Guarded by mu.
	set   []*member   // the set alarms, sorted by moment
	armed int64       // the moment that the hub is armed for, or notArmed
	fd    *descriptor // nil if none is open

	// Two pairs of timers call tick, alternately. Only timers is set, unless timerAt is
	// never: the first timer for timerAt, the second for spareAfter later. The goroutine
	// that a timer starts runs next, unless another goroutine becomes ready right behind
	// it. Then it may wait behind thousands, and the second timer's goroutine runs
	// earlier.
	timers, others [2]*time.Timer
	timerAt        int64

	lastRing  int64
	gap       int64 // moving average of the time between rings
	lateRings int   // in a row
	busyUntil int64
}

const (
	never    = int64(math.MaxInt64)
	notArmed = int64(math.MinInt64)

	// near is how close the first moment must be for the descriptor to be open. While a
	// goroutine waits for a descriptor, the runtime makes more system calls whenever it
	// looks for work.
	near   = int64(time.Second)
	linger = int64(20 * time.Millisecond)

	// guardAfter, less the gap between rings, is how long after the descriptor the guards
	// are set. The rarer the rings are, the cheaper it is to set the guards close.
	guardAfter = int64(20 * time.Millisecond)
	spareAfter = int64(7 * time.Millisecond) // rarely the period of another timer
	lateAfter  = int64(3 * time.Millisecond) // an idle process is late by up to 1.5 ms
	calmAfter  = int64(2 * time.Second)

	// Rings are frequent while the gap between them is less than twice apart. A gap above
	// maxGap counts as maxGap in the average, so that the average falls within some
	// thirty rings.
	apart  = int64(time.Millisecond)
	maxGap = 16 * apart
)

// process returns the process's hub.
var process = sync.OnceValue(newHub)

func newHub() *hub {
	h := &hub{start: time.Now(), armed: notArmed, timerAt: never, gap: maxGap}
	timer := func() *time.Timer { return time.AfterFunc(math.MaxInt64, h.tick) }
	h.timers, h.others = [2]*time.Timer{timer(), timer()}, [2]*time.Timer{timer(), timer()}
	return h
}

func (h *hub) at(t time.Time) int64 { return int64(t.Sub(h.start)) }
func (h *hub) now() int64           { return h.at(time.Now()) }

// firstLocked returns the first moment, or never if no alarm is set.
func (h *hub) firstLocked() int64 {
	if len(h.set) == 0 {
		return never
	}
	return h.set[0].when
}

// move sets an alarm for a moment. If when is never, it unsets the alarm.
func (h *hub) move(m *member, when int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.Index(h.set, m); i >= 0 {
		h.set = slices.Delete(h.set, i, i+1)
	}
	if m.when = when; when != never {
		i, _ := slices.BinarySearchFunc(h.set, when, func(m *member, when int64) int { return cmp.Compare(m.when, when) })
		h.set = slices.Insert(h.set, i, m)
	}
	if h.armed != h.firstLocked() {
		h.armLocked(h.now())
	}
}

func (h *hub) release() {
	h.mu.Lock()
	if len(h.set) > 0 {
		h.mu.Unlock()
		return
	}
	fd := h.fd
	h.fd = nil
	h.armLocked(h.now())
	h.mu.Unlock()
	if fd != nil {
		fd.file.Close()
	}
}

// armLocked arms the hub for the first moment.
func (h *hub) armLocked(now int64) {
	at := h.firstLocked()
	h.armed = at
	if at-now <= near && now >= h.busyUntil && h.openLocked() {
		guard := guardAfter - h.gap
		if h.gap < 2*apart {
			at = max(at, h.lastRing+apart)
		}
		h.fd.set(now, at)
		if at+guard/2 <= h.timerAt && h.timerAt <= at+guard {
			return
		}
		at += guard
	} else if h.fd != nil {
		h.fd.at.Store(never)
		at = min(at, now+linger)
	}
	h.timerLocked(now, at)
}

// timerLocked sets the timers for a moment, or stops them. It sets the other pair before
// it stops the pair with the earlier moment: so no thread wakes up only to sleep longer,
// and package time wakes no thread to handle a timer that became the first.
func (h *hub) timerLocked(now, at int64) {
	if h.timerAt == at {
		return
	}
	h.timerAt = at
	h.timers, h.others = h.others, h.timers
	if at != never {
		d := time.Duration(max(at-now, 0))
		h.timers[0].Reset(d)
		h.timers[1].Reset(d + time.Duration(spareAfter))
	}
	h.others[0].Stop()
	h.others[1].Stop()
}

// tick is the timers' function.
func (h *hub) tick() {
	h.mu.Lock()
	now := h.now()
	if now < h.timerAt {
		h.mu.Unlock() // the timers have been set for another moment meanwhile
		return
	}
	h.timerLocked(now, never)
	first, isGuard := h.firstLocked(), h.fd != nil && h.fd.at.Load() != never
	if first <= now || !isGuard {
		h.closeLocked() // its goroutine is late or inside a function, or the linger has passed
	}
	if first > now {
		h.armLocked(now)
		h.mu.Unlock()
		return
	}
	if isGuard {
		h.busyUntil = now + calmAfter
	}
	h.ringLocked(now, first)()
}

// closeLocked closes the descriptor, if it is open, which ends its goroutine.
func (h *hub) closeLocked() {
	if h.fd != nil {
		go h.fd.file.Close() // Close waits for the goroutine, which may wait for a proc
		h.fd = nil
	}
}

// ringLocked removes the due alarms and unlocks the hub. It returns the function of the
// first one for the caller to call, and calls the others on new goroutines. at is the
// moment that the ring was set for.
func (h *hub) ringLocked(now, at int64) (first func()) {
	if now-at <= lateAfter {
		h.lateRings = 0
	} else if h.lateRings++; h.lateRings >= 2 {
		h.busyUntil = now + calmAfter
	}
	due := 0
	for due < len(h.set) && h.set[due].when <= now {
		due++
	}
	first = h.set[0].f
	for _, m := range h.set[1:due] {
		go m.f()
	}
	h.set = slices.Delete(h.set, 0, due)
	h.gap += (min(now-h.lastRing, maxGap) - h.gap) / 16
	h.lastRing = now
	h.armed = notArmed
	if len(h.set) > 0 {
		h.armLocked(now)
	} // otherwise the function will reset or stop its alarm
	h.mu.Unlock()
	return first
}
