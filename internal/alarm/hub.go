package alarm

import (
	"container/heap"
	"io"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/tickless/tickless/internal/bubble"
)

// A hub is what alarms share: a timer of package time with backups and, on Linux, a
// timerfd. Both are set for the first of the alarms' moments, and whichever comes
// first rings.
//
// # Who rings
//
// Whoever finds that the first moment has passed, with the lock held, takes out all
// members that are due, sets timer and descriptor for the next, and releases the
// lock. Only then it calls the functions. So a function that never returns holds up
// nobody: neither other members, whose functions have goroutines of their own, nor
// the next ring.
//
// What goes to the goroutine that waits for the descriptor is one function at a time.
// While that runs, nobody waits; so the timer rings in its place, and if it has to,
// another goroutine waits from then on.
type hub struct {
	// start is where moments count from.
	start time.Time

	mu sync.Mutex
	// All below is guarded by mu.

	set members
	// armed is the moment that the hub is armed for: that of the first member, or
	// never if there is none, or for as long as the one that is calling its function
	// may be about to set it again.
	armed int64
	// exact: the descriptor is set for armed, too.
	exact bool
	fd    descriptor
	// idle is since when the descriptor has not been needed, never if it is.
	idle int64

	// timer calls tick at timerAt: at armed, or soonEnough before, or at the end of
	// the linger. backups do so a while after armed.
	timer   *bell
	timerAt int64
	backups [len(backupAfter)]*bell
	// backed: the backups are set.
	backed bool
	// guards are what there is while the backups are not set. The one that is set, or was
	// last, is guards[guard], for guardAt: guardAfter behind a moment. Where no more than
	// few goroutines are, none is needed.
	guards     [2]*bell
	guard      int
	guardAt    int64
	guardAfter time.Duration
	few        int

	pace pace

	rings Rings

	// running counts the goroutines of the bells, and others, that call no function of a
	// member's, and ended those that there have been; closers are the members whose closing
	// waits for them.
	running int
	ended   uint64
	closers []closer
}

const (
	never = int64(math.MaxInt64)

	// near is how close a moment has to be for the descriptor to be held for it;
	// until then package time's timer waits alone, to wake up soonEnough before.
	near       = int64(time.Second)
	soonEnough = int64(5 * time.Millisecond)
	// linger is how long the descriptor is kept when it is not needed. While a
	// goroutine waits for one, the runtime asks the system for more whenever it looks
	// for work: so it is not kept just in case.
	linger = int64(20 * time.Millisecond)
)

const (
	// guardAfter is how long after the timer the guard rings.
	guardAfter = 20 * time.Millisecond
	// few goroutines take no longer for a round of a run queue than these times the 10 ms
	// for which Go's scheduler lets each compute.
	few = 16
)

// backupAfter is how long after the timer its backups ring.
//
// The timer's function runs on a new goroutine that the runtime puts in front of a
// proc's run queue. A goroutine that waits for a descriptor goes to the end: on a
// process whose procs are busy that is late by as long as the queue is. So the timer
// is always set. The timerfd is set besides, to be exact while procs are idle, when
// the moment is near and rings are rare.
//
// Even the timer's goroutine may be late: if another timer of the process, or
// anything else, makes a goroutine ready before it gets to run, that one takes its
// place and it goes to the end of the queue. All that depends on this hub would
// wait there with it. So the timer has backups, as long as the procs are found busy:
// setting three timers for each ring, and the wake-ups at moments that they have been
// moved away from, cost more than the ring on idle procs.
//
// Until they are found busy there is a guard, which rings guardAfter behind the moment,
// unless there are few goroutines: then a queue is short. It is left where it is while it
// is behind the moment, and no more than guardAfter. When that has come to lie behind it,
// it is stopped, and another is set: package time wakes a proc up for a timer that has been
// moved further away, but not for one that is stopped, if the timer is the proc's own and
// has few beside it. Otherwise a ring costs a second wake-up, if no other rings come soon.
var backupAfter = [...]int64{int64(2 * time.Millisecond), int64(10 * time.Millisecond)}

// process returns the process's hub.
var process = sync.OnceValue(func() *hub {
	h := newHub()
	made.Store(h)
	return h
})

func newHub() *hub {
	h := &hub{start: time.Now(), armed: never, idle: never, timerAt: never, guardAfter: guardAfter, few: few}
	h.timer = newBell(h, h.tick)
	for i := range h.backups {
		h.backups[i] = newBell(h, func() { h.backup(h.backups[i]) })
	}
	for i := range h.guards {
		h.guards[i] = newBell(h, func() { h.backup(h.guards[i]) })
	}
	return h
}

func (h *hub) add(f func()) *member {
	return h.addThen(func() bool { f(); return false }, nil)
}

func (h *hub) addThen(f func() bool, then func()) *member {
	return &member{h: h, f: f, then: then, index: unset, made: make(chan struct{})}
}

// at returns the moment that t is, a reading of the system's clock.
func (h *hub) at(t time.Time) int64 { return int64(t.Sub(h.start)) }

func (h *hub) now() int64 { return h.at(time.Now()) }

// after returns the moment that comes d after now.
func after(now int64, d time.Duration) int64 {
	return now + min(max(int64(d), 0), never-1-now)
}

// moveLocked sets a member for a moment.
func (h *hub) moveLocked(m *member, when int64) {
	m.when = when
	if m.index == unset {
		heap.Push(&h.set, m)
	} else {
		heap.Fix(&h.set, m.index)
	}
}

// removeLocked unsets a member.
func (h *hub) removeLocked(m *member) {
	if m.index != unset {
		heap.Remove(&h.set, m.index)
	}
}

// settleLocked arms the hub unless it is armed for the first moment. Who is in a bubble
// has not the time: timers would be set by the bubble's, and goroutines be the bubble's.
// But that one can only have unset a member, so the hub is armed for an earlier moment,
// and arms itself again then.
func (h *hub) settleLocked(now time.Time) {
	armed := h.armed != never && h.armed == h.set.first()
	if !armed && bubble.Monotonic(now) {
		h.armLocked(h.at(now))
	}
}

// armLocked arms the hub for the first moment, or for what comes before that.
func (h *hub) armLocked(now int64) {
	h.armed = h.set.first()
	h.exact = false
	switch {
	case h.armed == never:
		h.restLocked(now, never)
	case h.armed-now > near:
		h.restLocked(now, h.armed-soonEnough)
	default:
		if d := h.armed - now; d > 0 && h.pace.rare(h.armed) && h.openLocked() {
			h.exact, h.idle = true, never
			h.fd.set(time.Duration(d))
		} else if h.fd.isOpen() {
			h.idle = min(h.idle, now)
		}
		h.timerLocked(now, h.armed)
		h.backLocked(now, h.pace.busy(h.armed))
	}
	h.guardLocked(now)
}

// guardLocked sets the guard for the moment that the hub is armed for, if it needs one.
func (h *hub) guardLocked(now int64) {
	if h.backed || h.armed == never || runtime.NumGoroutine() <= h.few {
		h.unguardLocked()
		return
	}
	moment := max(h.armed, now)
	at := after(moment, h.guardAfter)
	g := h.guards[h.guard]
	switch {
	case g.set && moment < h.guardAt && h.guardAt <= at:
		return
	case g.set && h.guardAt <= moment: // it would ring in vain, or its goroutine has to wait
		g.stop()
		fallthrough
	case !g.set:
		h.guard = (h.guard + 1) % len(h.guards)
		g = h.guards[h.guard]
	}
	h.guardAt = at
	g.reset(time.Duration(at - now))
}

// unguardLocked stops the guard.
func (h *hub) unguardLocked() {
	if g := h.guards[h.guard]; g.set {
		g.stop()
	}
}

// backLocked sets the backups or stops them.
func (h *hub) backLocked(now int64, set bool) {
	for i, after := range backupAfter {
		switch {
		case set:
			h.backups[i].reset(time.Duration(h.armed - now + after))
		case h.backed:
			h.backups[i].stop()
		}
	}
	h.backed = set
}

func (h *hub) crowded() {
	now := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.crowdedLocked(now)
}

// crowdedLocked is told that goroutines wait for a proc: the procs are busy, before a ring
// that is late would show it.
func (h *hub) crowdedLocked(now int64) {
	h.pace.busyUntil = now + busyFor
	if h.armed != never && h.timerAt == h.armed && !h.backed {
		h.backLocked(now, true)
	}
}

// restLocked sets the timer for a moment, or for the end of the linger if there is
// still a descriptor.
func (h *hub) restLocked(now, until int64) {
	h.backLocked(now, false)
	if h.fd.isOpen() {
		h.idle = min(h.idle, now)
		until = min(until, h.idle+linger)
	}
	h.timerLocked(now, until)
}

// timerLocked sets the timer for a moment, or stops it.
func (h *hub) timerLocked(now, at int64) {
	if h.timerAt == at {
		return
	}
	h.timerAt = at
	if at == never {
		h.timer.stop()
	} else {
		h.timer.reset(time.Duration(max(at-now, 0)))
	}
}

// tick is the timer's function.
func (h *hub) tick() {
	now := h.now()
	h.mu.Lock()
	h.timer.beginLocked()
	if now < h.timerAt {
		h.endLocked()
		h.mu.Unlock() // it has been set for another moment meanwhile
		return
	}
	h.timerAt = never
	if h.set.first() <= now {
		h.rings.ByTimer++
		h.ringLateLocked(now).callDeep()
		return
	}
	file := h.lingeredLocked(now)
	h.armLocked(now)
	if file == nil {
		h.endLocked()
	}
	h.mu.Unlock()
	if file != nil {
		h.closeFile(file)
	}
}

// backup is the function of the backups and the guards.
func (h *hub) backup(b *bell) {
	now := h.now()
	h.mu.Lock()
	b.beginLocked()
	if h.set.first() <= now {
		h.rings.ByBackup++
		h.ringLateLocked(now).callDeep()
		return
	}
	h.guardLocked(now)
	h.endLocked()
	h.mu.Unlock()
}

// ringLateLocked is ringLocked for a bell, whose goroutine is one of the first member's
// from here on. If the descriptor ought to have rung, the goroutine that waits for it is
// held up in a function, or does not get to run.
func (h *hub) ringLateLocked(now int64) (first *member) {
	if !h.exact || !h.replaceLocked() {
		h.pace.late(now, now-h.set.first(), h.exact)
	}
	h.endLocked()
	return h.ringLocked(now)
}

// ringLocked takes out the members that are due, of which there is one at the least,
// unlocks the hub, and has the functions of all but the first called. That is the
// caller's to call: on a stack that is as shallow as it can be, see callDeep.
func (h *hub) ringLocked(now int64) *member {
	first := h.popLocked()
	var rest []*member
	for h.set.first() <= now {
		rest = append(rest, h.popLocked())
	}
	h.pace.ring(now)
	file := h.lingeredLocked(now)
	h.armed, h.exact = never, false
	if len(h.set) > 0 {
		h.armLocked(now)
	}
	if file != nil {
		h.running++
	}
	h.mu.Unlock()
	if file != nil {
		// It waits for the goroutine that waits for the descriptor, which on busy procs
		// is at the end of a run queue. The functions must not.
		go h.closeFile(file)
	}
	if len(rest) > 0 {
		go callAll(rest)
	}
	return first
}

// popLocked takes out the first member, for its function to be called.
func (h *hub) popLocked() *member {
	m := heap.Pop(&h.set).(*member)
	m.left++
	return m
}

// lingeredLocked takes the descriptor if it has not been needed for long.
func (h *hub) lingeredLocked(now int64) io.Closer {
	if h.idle == never || now-h.idle < linger {
		return nil
	}
	return h.takeLocked()
}

// takeLocked takes the descriptor, if there is one, for the caller to close without
// the lock.
func (h *hub) takeLocked() io.Closer {
	h.exact, h.idle = false, never
	return h.fd.takeLocked()
}
