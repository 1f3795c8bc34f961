package timer

import (
	"math"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/tickless/tickless/timingwheel"
)

// # Stopping and resetting a Timer without the shard's lock
//
// From the second Reset on, the wheel holds the Timer itself in place of its callback,
// unless the Scheduler has slack. Stop, and Reset to a later time, then change the Timer
// alone, under its own lock. Its entry stays in the same bucket. When the entry falls due
// there, it moves to the Timer's deadline, or the Timer fires.
//
// A stopped Timer is listed in the shard's stoppedTimers. If it is reset soon, nothing
// else changes: see BenchmarkStopReset. Otherwise it leaves the wheel together with
// others.
//
// Rules:
//
//   - Timer.mu guards the state. It decides between Stop, Reset, the poller and Close.
//   - Taking a Timer's entry out of the wheel, or moving it there, also needs the shard's
//     lock, which is taken first.
//   - The entry's deadline in the wheel is never later than the Timer's deadline.
//
// The states and transitions. A transition with a star also holds the shard's lock:
//
//	           Reset *             Close *
//	outside ──────────▶ pending ─────────────▶ handedBack
//	  ▲  ▲               │ │  ▲
//	  │  └── it fires * ─┘ │  │ Reset
//	  │              Stop  ▼  │
//	  └────────────────── stopped
//	    settled, or due *
const (
	// outside: the wheel does not hold the Timer itself. The Timer has fired or was
	// stopped, the wheel holds its callback, or it uses a fallback.
	outside = iota
	// handedBack: Close took the entry out. Otherwise the same as outside.
	handedBack
	// pending: the Timer will fire. If it is pending or stopped, the wheel holds the
	// Timer.
	pending
	stopped
)

// stopInWheel stops a Timer that the wheel holds. active reports whether the Timer was
// pending. done is false if the wheel does not hold the Timer.
func (t *Timer) stopInWheel() (active, done bool) {
	t.mu.Lock()
	was := t.state.Load()
	if was == pending {
		t.state.Store(stopped)
	}
	t.mu.Unlock()
	if was == pending {
		if unsettled := t.sh.stopped.add(t); unsettled != nil {
			t.sh.mu.Lock()
			t.sh.settleTimerLocked(unsettled)
			t.sh.settleLocked()
			t.sh.unlock()
		}
	}
	return was == pending, was >= pending
}

// resetInWheel resets a Timer to a deadline that is not before its entry's. active
// reports whether the Timer was pending. done is false, and nothing has changed, if the
// reset needs the shard's lock.
func (t *Timer) resetInWheel(now int64, d time.Duration) (active, done bool) {
	if d <= 0 {
		return false, false
	}
	deadline := deadlineAfter(now, d)
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.state.Load()
	// Close sets closed before it gets to this Timer. So either closed is seen here, or
	// Close hands this Timer back.
	if was < pending || deadline < t.placed || t.sh.s.closed.Load() {
		return false, false
	}
	t.deadline = deadline
	if was == stopped {
		t.state.Store(pending)
		t.sh.stopped.ownStripe().restarts.Add(1)
	}
	return was == pending, true
}

// resetInWheelLocked is like resetInWheel, for any deadline. done is false if the wheel
// does not hold the Timer, or no longer does.
func (t *Timer) resetInWheelLocked(now int64, d time.Duration) (active, done bool) {
	sh := t.sh
	t.mu.Lock()
	was := t.state.Load()
	if was < pending {
		t.mu.Unlock()
		return false, false
	}
	if d > 0 && (was == pending || !sh.s.closed.Load()) {
		deadline := deadlineAfter(now, d)
		sh.wheel.Observe(now)
		if sh.wheel.Move(t.id, deadline) {
			t.deadline, t.placed = deadline, deadline
			if was == stopped {
				t.state.Store(pending)
				sh.n.stopped++
				sh.n.started++
			}
			t.mu.Unlock()
			return was == pending, true
		}
	}
	sh.leaveLocked(t)
	t.mu.Unlock()
	sh.wheel.Remove(t.id)
	sh.noteEmptiedLocked(true)
	if was == pending {
		sh.fireLocked(t.p, t.tag)
	}
	sh.settleLocked()
	return was == pending, was == pending
}

// entersWheel reports whether resetting an outside Timer puts the Timer itself into the
// wheel.
func (t *Timer) entersWheel(d time.Duration) bool {
	s := t.sh.s
	return d > 0 && s.config.slack.most == 0 && !s.closed.Load()
}

// enterWheelLocked resets an outside Timer by putting the Timer itself into the wheel. It
// reports whether the Timer was active.
func (t *Timer) enterWheelLocked(now int64, d time.Duration) (active bool) {
	sh, old := t.sh, t.id
	deadline := deadlineAfter(now, d)
	sh.wheel.Observe(now)
	id, ok := sh.wheel.AddTagged(deadline, 0, timerPayload(t), tagTimer)
	_, active = sh.removeLocked(old)
	if !active {
		active = sh.stopFallbackLocked(old) || t.withdrawLocked()
		sh.n.started++
	}
	if !ok {
		sh.fireLocked(t.p, t.tag)
		return active
	}
	if sh.stopped == nil {
		sh.stopped = &stoppedTimers{s: sh.s}
	}
	sh.timers++
	sh.stopped.setRoom(sh.timers)
	t.mu.Lock()
	t.id, t.deadline, t.placed = id, deadline, deadline
	t.state.Store(pending)
	t.mu.Unlock()
	return active
}

// leaveLocked updates the state of a Timer whose entry leaves the wheel. The caller has
// locked the Timer.
func (sh *shard) leaveLocked(t *Timer) {
	if t.state.Load() == stopped {
		sh.n.stopped++
	}
	t.state.Store(outside)
	sh.timers--
}

// expireTimersLocked replaces each Timer in expired by its callback or channel. It drops
// Timers that do not fire.
func (sh *shard) expireTimersLocked(expired []timingwheel.Expired[payload]) []timingwheel.Expired[payload] {
	n := 0
	for i := range expired {
		if x := &expired[i]; x.Tag != tagTimer || sh.expireTimerLocked(x) {
			expired[n] = *x
			n++
		}
	}
	clear(expired[n:])
	sh.settleLocked()
	return expired[:n]
}

// expireTimerLocked replaces a Timer whose entry was due by its callback or channel. It
// reports false if the Timer was stopped, or is due later; then its entry has moved to
// that deadline.
func (sh *shard) expireTimerLocked(x *timingwheel.Expired[payload]) bool {
	t := x.Value.timer()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state.Load() == stopped {
		sh.leaveLocked(t)
		return false
	}
	if t.deadline != t.placed {
		if id, ok := sh.wheel.AddTagged(t.deadline, 0, x.Value, tagTimer); ok {
			t.id, t.placed = id, t.deadline
			sh.n.cascaded++
			return false
		}
		x.Deadline, x.Due = t.deadline, t.deadline
	}
	x.Value, x.Tag = t.p, t.tag
	sh.leaveLocked(t)
	return true
}

// resolve replaces the Timer in x by its callback or channel and its own deadline. It
// reports false if the Timer was stopped, or is outside by now.
func (t *Timer) resolve(x *timingwheel.Expired[payload]) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if state := t.state.Load(); state == stopped || state == outside {
		return false
	}
	x.Value, x.Tag, x.Deadline, x.Due = t.p, t.tag, t.deadline, t.deadline
	return true
}

// handBackTimersLocked settles all Timers in a wheel that is handed back. It returns how
// many of them were stopped.
func (sh *shard) handBackTimersLocked(w *timingwheel.Wheel[payload]) (dead int) {
	if sh.timers == 0 {
		return 0
	}
	w.Each(func(x timingwheel.Entry[payload]) {
		if x.Tag != tagTimer {
			return
		}
		t := x.Value.timer()
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.state.Load() == stopped {
			sh.leaveLocked(t)
			dead++
			return
		}
		sh.leaveLocked(t)
		t.state.Store(handedBack)
	})
	sh.settleLocked()
	return dead
}

// stoppedTimers lists Timers that were stopped while the wheel held them. They leave the
// wheel when a stripe is full, when a timer of the shard fires, when the timers are
// counted, and when the trimmer runs.
//
// A Timer stays on its shard, but may be stopped on any proc. So each goroutine uses one
// of several stripes.
type stoppedTimers struct {
	s *Scheduler
	// room is how many Timers a stripe may have. All stripes together must have room for
	// fewer Timers than the shard has. Otherwise a Scheduler with nothing pending would
	// sleep until a stopped Timer is due.
	room    atomic.Int32
	_       [52]byte
	stripes [stripes]stripe
}

const stripes = 8

// A stripe is two cache lines.
type stripe struct {
	// last is the Timer that was stopped last. If another is stopped before last is
	// reset, last moves to earlier.
	last    atomic.Pointer[Timer]
	earlier [14]atomic.Pointer[Timer]
	// restarts counts the Timers that were reset after they were stopped. shard.n counts
	// neither the stop nor the start.
	restarts atomic.Uint64
}

// ownStripe returns the calling goroutine's stripe, chosen by the address of its stack, which
// needs no access to memory.
func (l *stoppedTimers) ownStripe() *stripe {
	var here byte
	hash := uint64(uintptr(unsafe.Pointer(&here))>>11) * 0x9e3779b97f4a7c15 // Knuth's multiplicative hash
	return &l.stripes[hash/(math.MaxUint64/stripes+1)]
}

// add adds a Timer. If there is no room, it returns a Timer that the caller must settle.
func (l *stoppedTimers) add(t *Timer) (unsettled *Timer) {
	room := l.room.Load()
	if room == 0 {
		return t
	}
	own := l.ownStripe()
	last := own.last.Swap(t)
	if last == nil {
		l.s.trim.soon()
	} else if last != t && last.state.Load() == stopped && !own.addEarlier(last, int(room)-1) {
		return last
	}
	if l.room.Load() < room {
		return t // the stripe may have been settled before t was added
	}
	return nil
}

// addEarlier adds t to the first room slots of earlier. It reports false if these are
// full.
func (s *stripe) addEarlier(t *Timer, room int) bool {
	for i := range s.earlier[:room] {
		if s.earlier[i].Load() == nil && s.earlier[i].CompareAndSwap(nil, t) {
			return true
		}
	}
	return false
}

// restarts returns how many Timers were reset after they were stopped.
func (l *stoppedTimers) restarts() (n uint64) {
	if l != nil {
		for i := range l.stripes {
			n += l.stripes[i].restarts.Load()
		}
	}
	return n
}

// setRoom sets the room for n Timers in the wheel, and reports whether the room has
// shrunk.
func (l *stoppedTimers) setRoom(n int) bool {
	room := int32(min(max(n-1, 0)/stripes, len(stripe{}.earlier)+1))
	was := l.room.Load()
	if room != was {
		l.room.Store(room)
	}
	return room < was
}

// settleLocked removes all stopped Timers from the wheel.
func (sh *shard) settleLocked() {
	l := sh.stopped
	if l == nil {
		return
	}
	for again := true; again; again = l.setRoom(sh.timers) {
		for i := range l.stripes {
			sh.settleSlotLocked(&l.stripes[i].last)
			for j := range l.stripes[i].earlier {
				sh.settleSlotLocked(&l.stripes[i].earlier[j])
			}
		}
	}
}

func (sh *shard) settleSlotLocked(slot *atomic.Pointer[Timer]) {
	if slot.Load() != nil {
		sh.settleTimerLocked(slot.Swap(nil))
	}
}

// settleTimerLocked removes a Timer from the wheel if it is stopped.
func (sh *shard) settleTimerLocked(t *Timer) {
	if t.state.Load() != stopped {
		return
	}
	t.mu.Lock()
	is := t.state.Load() == stopped
	if is {
		sh.leaveLocked(t)
	}
	t.mu.Unlock()
	if is {
		sh.wheel.Remove(t.id)
		sh.noteEmptiedLocked(true)
	}
}
