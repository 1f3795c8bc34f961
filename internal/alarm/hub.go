package alarm

import (
	"cmp"
	"math"
	"os"
	"slices"
	"sync"
	"time"
)

// A hub rings for all alarms of a process, the first of which says when. It is in one of
// these states, which armLocked chooses whenever the first moment has changed:
//
//	state     first moment     descriptor           timer
//	idle      none             closed after linger  set for the end of the linger, or not
//	far       beyond near      closed after linger  a little before the moment
//	exact     near             set for the moment   guards: guardAfter behind it, or half of that
//	busy      near             not used             set for the moment
//
// The descriptor is late where procs are busy, or while its goroutine is inside a function
// that takes long. After two late rings in a row, or one by the guard, the state is busy for
// calmAfter.
//
// Behind the timer, by guardAfter, there is a spare one.
//
// While rings are frequent the descriptor rings no earlier than apart after the last ring.
//
// The goroutine that finds the first moment passed, be it the timer's or the one that waits
// for the descriptor, takes out all alarms that are due, arms the hub for the next, and
// calls their functions without the lock, the first one itself. So a function that never
// returns holds up no other.
type hub struct {
	start time.Time // where moments count from

	mu sync.Mutex
	// Guarded by mu.
	set   []*member   // the alarms that are set, the first to go off first
	armed int64       // the moment that the hub is armed for; never if it is not
	fd    *descriptor // nil: none is open

	// Two timers call tick: timer is set for timerAt or never, and spare for guardAfter later.
	// The goroutine that a timer starts is the next to run, unless another becomes ready
	// right behind it: then it may wait behind thousands, and the spare's runs before.
	timer, spare *time.Timer
	timerAt      int64

	lastRing int64
	// Rings fill a leaky bucket, which loses one in spacing and will be empty at emptyAt.
	emptyAt   int64
	lateRings int // in a row
	busyUntil int64
}

const (
	never = int64(math.MaxInt64)

	// near is how close a moment has to be for the descriptor to be open: while a goroutine
	// waits for one, the runtime asks the system for more whenever it looks for work.
	near       = int64(time.Second)
	soonEnough = int64(5 * time.Millisecond)
	linger     = int64(20 * time.Millisecond)

	guardAfter = int64(10 * time.Millisecond)
	lateAfter  = int64(3 * time.Millisecond) // in calm, the timer is late by up to 1.5
	calmAfter  = int64(2 * time.Second)

	// Rings are frequent while the leaky bucket holds more than a burst.
	apart   = int64(time.Millisecond)
	spacing = 2 * apart
	burst   = 32 * spacing
)

// process returns the process's hub.
var process = sync.OnceValue(newHub)

func newHub() *hub {
	h := &hub{start: time.Now(), armed: never, timerAt: never}
	h.timer, h.spare = time.AfterFunc(math.MaxInt64, h.tick), time.AfterFunc(math.MaxInt64, h.tick)
	h.stopTimersLocked()
	return h
}

func (h *hub) at(t time.Time) int64 { return int64(t.Sub(h.start)) }
func (h *hub) now() int64           { return h.at(time.Now()) }

// firstLocked returns the first moment, never if no alarm is set.
func (h *hub) firstLocked() int64 {
	if len(h.set) == 0 {
		return never
	}
	return h.set[0].when
}

// move moves an alarm to a moment, or unsets it for never.
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
	if h.armed == never || h.armed != h.firstLocked() {
		h.armLocked(h.now())
	}
}

func (h *hub) release() {
	h.mu.Lock()
	var file *os.File
	if len(h.set) == 0 {
		file = h.takeLocked()
		h.armLocked(h.now())
	}
	h.mu.Unlock()
	file.Close()
}

// armLocked arms the hub for the first moment.
func (h *hub) armLocked(now int64) {
	h.armed = h.firstLocked()
	isNear := h.armed != never && h.armed-now <= near
	if isNear && now >= h.busyUntil && h.openLocked() {
		at := h.armed
		if h.emptyAt-now > burst {
			at = max(at, h.lastRing+apart)
		}
		h.fd.at.Store(at)
		setTimerfd(h.fd.fd, at-now)
		if h.timerAt < at+guardAfter/2 || h.timerAt > at+guardAfter {
			h.timerLocked(now, at+guardAfter)
		}
		return
	}
	at := h.armed
	if !isNear && at != never {
		at -= soonEnough
	}
	if h.fd != nil {
		h.fd.at.Store(never)
		at = min(at, now+linger)
	}
	h.timerLocked(now, at)
}

// timerLocked sets the timers for a moment, or stops them. The later one is moved to the front
// before the other is moved back, so that nobody wakes up to sleep longer.
func (h *hub) timerLocked(now, at int64) {
	if h.timerAt == at {
		return
	}
	h.timerAt = at
	if at == never {
		h.stopTimersLocked()
		return
	}
	h.timer, h.spare = h.spare, h.timer
	d := time.Duration(max(at-now, 0))
	h.timer.Reset(d)
	h.spare.Reset(d + time.Duration(guardAfter))
}

func (h *hub) stopTimersLocked() {
	h.timer.Stop()
	h.spare.Stop()
}

// tick is the timers' function.
func (h *hub) tick() {
	now := h.now()
	h.mu.Lock()
	if now < h.timerAt {
		h.mu.Unlock() // it has been set for another moment meanwhile
		return
	}
	h.timerAt = never
	h.stopTimersLocked()
	isExact := h.fd != nil && h.fd.at.Load() != never
	first := h.firstLocked()
	var file *os.File
	if first <= now || !isExact {
		// The linger is over, or the timer leads, or the descriptor's goroutine is late or
		// inside a function.
		file = h.takeLocked()
	}
	f := func() {}
	if first <= now {
		if isExact {
			h.busyUntil = now + calmAfter
		}
		f = h.ringLocked(now, first)
	} else {
		h.armLocked(now)
		h.mu.Unlock()
	}
	if file != nil {
		go file.Close() // it waits for the descriptor's goroutine, which may wait for a proc
	}
	f()
}

// takeLocked takes the descriptor for the caller to close, which ends its goroutine.
func (h *hub) takeLocked() (file *os.File) {
	if h.fd != nil {
		file, h.fd = h.fd.file, nil
	}
	return file // to close a nil one does nothing
}

// ringLocked takes out the alarms that are due and unlocks the hub. It returns the function of
// the first one, for the caller to call; goroutines of their own call the others'. at is the
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
	h.lastRing = now
	h.emptyAt = min(max(h.emptyAt, now)+spacing, now+2*burst)
	h.armed = never
	if h.fd != nil {
		h.fd.at.Store(never)
	}
	if len(h.set) > 0 {
		h.armLocked(now)
	} // else the function will set its alarm again, or stop it
	h.mu.Unlock()
	return first
}
