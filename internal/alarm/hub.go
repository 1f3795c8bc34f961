package alarm

import (
	"math"
	"sync"
	"time"

	"github.com/tickless/tickless/internal/bubble"
)

// A hub rings for all alarms of a process, the first of which says when. It is in one of
// these states, which armLocked chooses whenever the first moment has changed:
//
//	state     first moment     descriptor           timer
//	idle      none             closed after linger  set for the end of the linger, or not
//	far       beyond near      closed after linger  a little before the moment
//	exact     near             set for the moment   guards: up to guardAfter behind it
//	busy      near             not used             set for the moment
//
// The descriptor is late where procs are busy, or while its goroutine is inside a function
// that takes long. The guard rings then, and has another goroutine wait. After a ring that
// was late for such a function, or two in a row that were late, the state is busy for a
// while: at first for minHold, and up to maxHold while each trial of the descriptor fails.
//
// While rings are frequent the descriptor rings no earlier than apart after the last ring.
//
// The goroutine that finds the first moment passed, be it the timer's or the one that waits
// for the descriptor, takes out all members that are due, arms the hub for the next, and
// calls the functions without the lock, the first one itself. So a function that never
// returns holds up nobody.
type hub struct {
	start time.Time // where moments count from

	mu sync.Mutex
	// Guarded by mu.
	set   members
	armed int64 // the moment that the hub is armed for; never if it is not

	fd   descriptor
	fdAt int64 // what the descriptor is set for; never in all states but exact

	// Two timers call tick, by turns: only timer is set, for timerAt or never. A timer is
	// set before the one for an earlier moment is stopped, so that nobody wakes up to sleep
	// longer.
	timer, other *time.Timer
	timerAt      int64

	lastRing int64
	// full is until when the rings that there were take at one in spacing.
	full int64

	strikes   int // late rings in a row
	busyUntil int64
	hold      int64 // for how long it is busy the next time
}

const (
	never = int64(math.MaxInt64)

	// near is how close a moment has to be for the descriptor to be held for it: while a
	// goroutine waits for one, the runtime asks the system for more whenever it looks for
	// work.
	near       = int64(time.Second)
	soonEnough = int64(5 * time.Millisecond)
	linger     = int64(20 * time.Millisecond)

	guardAfter = int64(20 * time.Millisecond)
	lateAfter  = int64(1500 * time.Microsecond)
	minHold    = int64(100 * time.Millisecond)
	maxHold    = 64 * minHold

	// Rings are frequent if there are more than one in spacing, beyond a burst.
	apart   = int64(time.Millisecond)
	spacing = 2 * apart
	burst   = 32 * spacing
)

// process returns the process's hub.
var process = sync.OnceValue(newHub)

func newHub() *hub {
	h := &hub{start: time.Now(), armed: never, fdAt: never, timerAt: never, hold: minHold}
	h.timer, h.other = time.AfterFunc(math.MaxInt64, h.tick), time.AfterFunc(math.MaxInt64, h.tick)
	h.timer.Stop()
	h.other.Stop()
	return h
}

// at returns the moment that t is, a reading of the system's clock.
func (h *hub) at(t time.Time) int64 { return int64(t.Sub(h.start)) }

func (h *hub) now() int64 { return h.at(time.Now()) }

// after returns the moment that comes d after now.
func after(now int64, d time.Duration) int64 {
	return now + min(max(int64(d), 0), never-1-now)
}

// settleLocked arms the hub unless it is armed for the first moment. A caller in a bubble
// can only have unset a member, and cannot set timers: the hub stays armed for an earlier
// moment, and arms itself again then.
func (h *hub) settleLocked(now time.Time) {
	if (h.armed == never || h.armed != h.set.first()) && bubble.Monotonic(now) {
		h.armLocked(h.at(now))
	}
}

// armLocked arms the hub for the first moment.
func (h *hub) armLocked(now int64) {
	h.armed, h.fdAt = h.set.first(), never
	switch {
	case h.armed == never || h.armed-now > near:
		until := h.armed
		if until != never {
			until -= soonEnough
		}
		if h.fd.isOpen() {
			until = min(until, now+linger)
		}
		h.timerLocked(now, until)
	case now < h.busyUntil || !h.openLocked():
		h.timerLocked(now, h.armed)
	default:
		h.fdAt = h.armed
		if h.full-now > burst {
			h.fdAt = max(h.fdAt, h.lastRing+apart)
		}
		h.fd.set(time.Duration(h.fdAt - now))
		if h.timerAt < h.fdAt+guardAfter/4 || h.timerAt > h.fdAt+guardAfter {
			h.timerLocked(now, h.fdAt+guardAfter)
		}
	}
}

// timerLocked sets the timer for a moment, or stops it.
func (h *hub) timerLocked(now, at int64) {
	if h.timerAt == at {
		return
	}
	if at != never {
		h.other.Reset(time.Duration(max(at-now, 0)))
	}
	h.timer.Stop()
	h.timer, h.other = h.other, h.timer
	h.timerAt = at
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
	if h.set.first() <= now {
		if h.fdAt != never {
			h.rangLocked(now, h.fd.isHeld())
			h.waitLocked()
		}
		h.call(h.ringLocked(now))
		return
	}
	var file closer
	if h.set.first()-now > near {
		file = h.takeLocked()
	}
	h.armLocked(now)
	h.mu.Unlock()
	file.close()
}

// rangLocked judges a ring in the state exact: held says that the goroutine which waits for
// the descriptor is inside a function.
func (h *hub) rangLocked(now int64, held bool) {
	if now-h.fdAt <= lateAfter {
		h.strikes, h.hold = 0, max(h.hold/2, minHold)
		return
	}
	if h.strikes++; h.strikes >= 2 || held {
		h.busyUntil = now + h.hold
		h.hold = min(4*h.hold, maxHold)
		h.strikes = 1 // the first trial counts
	}
}

// ringLocked takes out the members that are due, of which there is one at least, unlocks
// the hub, and has the functions of all but the first called. It returns the first, for
// the caller to call.
func (h *hub) ringLocked(now int64) (first func()) {
	first = h.popLocked()
	var rest []func()
	for h.set.first() <= now {
		rest = append(rest, h.popLocked())
	}
	h.lastRing = now
	h.full = min(max(h.full, now)+spacing, now+2*burst)
	h.armed, h.fdAt = never, never
	if len(h.set) > 0 {
		h.armLocked(now)
	} // else the function may be about to set its alarm again
	h.mu.Unlock()
	for _, f := range rest {
		go h.call(f)
	}
	return first
}

func (h *hub) popLocked() (f func()) {
	m := h.set[0]
	h.set.remove(m)
	return m.f
}

// call calls a member's function.
func (h *hub) call(f func()) {
	defer func() { // also if f ends this goroutine
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.armed == never {
			h.settleLocked(time.Now())
		}
	}()
	f()
}

// takeLocked takes the descriptor for the caller to close without the lock.
func (h *hub) takeLocked() closer {
	h.fdAt = never
	return h.fd.take()
}
