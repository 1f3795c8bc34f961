package timer

import (
	"math"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/tickless/tickless/timingwheel"
)

// # A Timer that is stopped and reset without the shard's lock
//
// From the second Reset on, the wheel holds the Timer itself in place of its callback, unless
// the Scheduler has slack. Stop, and Reset to a later time, then change the Timer alone, under
// its own lock. Its entry stays where it is in the wheel. When the entry falls due there, it
// moves to the Timer's deadline, or the Timer fires.
//
// A Timer that was stopped waits in the shard's stoppedTimers. If it is reset at once, nothing
// else has to change: BenchmarkStopReset. Else it leaves the wheel together with others.
//
// The ground rules:
//
//   - Timer.mu guards the state. It decides between Stop, Reset, the poller and Close.
//   - Whoever takes a Timer's entry out of the wheel, or moves it there, also holds the
//     shard's lock, which comes first.
//   - An entry never lies later in the wheel than the Timer's deadline.
//
// The states, and who makes each transition. Those with a star hold the shard's lock:
//
//	           Reset *             Close *
//	outside ──────────▶ pending ─────────────▶ handedBack
//	  ▲  ▲               │ │  ▲
//	  │  └── it fires * ─┘ │  │ Reset
//	  │              Stop  ▼  │
//	  └────────────────── stopped
//	    settled, or due *
const (
	// outside: the wheel does not hold the Timer. It has fired or was stopped, or the wheel
	// holds its callback, or it has fallen back.
	outside = iota
	// handedBack: Close took the entry out. Otherwise the Timer is as one outside.
	handedBack
	// pending: it will fire. In this state and the next the wheel holds the Timer.
	pending
	stopped
)

// stopInWheel stops a Timer that the wheel holds, and reports whether it was pending. It
// reports not done if the wheel does not hold it.
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

// resetInWheel moves a Timer to a deadline that is not before its entry falls due, and
// reports whether it was pending. It reports not done, and has done nothing, if that takes
// the shard's lock.
func (t *Timer) resetInWheel(now int64, d time.Duration) (active, done bool) {
	if d <= 0 {
		return false, false
	}
	deadline := deadlineAfter(now, d)
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.state.Load()
	// Close sets closed before it comes to this Timer: either that is seen here, or Close
	// hands this Timer back.
	if was < pending || deadline < t.placed || t.sh.s.closed.Load() {
		return false, false
	}
	t.deadline = deadline
	if was == stopped {
		t.state.Store(pending)
		t.sh.stopped.own().restarts.Add(1)
	}
	return was == pending, true
}

// resetInWheelLocked is resetInWheel to any deadline. It reports not done if the wheel does
// not hold the Timer, or no more.
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
	if was == pending {
		sh.fireLocked(t.p, t.tag)
	}
	sh.settleLocked()
	return was == pending, was == pending
}

// entersWheel reports whether a Timer that is outside and is reset enters the wheel itself.
func (t *Timer) entersWheel(d time.Duration) bool {
	s := t.sh.s
	return d > 0 && s.config.slack.most == 0 && !s.closed.Load()
}

// enterWheelLocked resets a Timer that is outside, and reports whether it was active.
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

// leaveLocked notes that a Timer's entry leaves the wheel. The Timer is locked.
func (sh *shard) leaveLocked(t *Timer) {
	if t.state.Load() == stopped {
		sh.n.stopped++
	}
	t.state.Store(outside)
	sh.timers--
}

// expireTimersLocked replaces Timers, among what has left the wheel, by what fires.
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

// expireTimerLocked replaces a Timer whose entry was due by what fires, or reports false: the
// Timer was stopped, or is due later, where its entry is now.
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

// standsFor replaces the Timer in x by what it stands for, or reports false if it stands for
// nothing: it was stopped, or is outside by now.
func (t *Timer) standsFor(x *timingwheel.Expired[payload]) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if state := t.state.Load(); state == stopped || state == outside {
		return false
	}
	x.Value, x.Tag, x.Deadline, x.Due = t.p, t.tag, t.deadline, t.deadline
	return true
}

// handBackTimersLocked settles all Timers in a wheel that is handed back, and returns how many
// of them were stopped.
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

// stoppedTimers are Timers that were stopped while the wheel held them. They leave the wheel
// when a stripe is full, when a timer of the shard fires, when someone counts the timers, and
// when the trimmer comes by.
//
// Timers stay on the shard that made them, but are stopped on all procs. So each goroutine
// uses one of several stripes.
type stoppedTimers struct {
	s *Scheduler
	// room is how many Timers a stripe may have: so few that the stripes cannot have all of the
	// shard's. Else a Scheduler with nothing pending would sleep until a stopped one is due.
	room    atomic.Int32
	_       [52]byte
	stripes [stripes]stripe
}

const stripes = 8

// A stripe is two cache lines.
type stripe struct {
	// last is the Timer that was stopped last. If another is stopped before it is reset, it
	// goes to earlier.
	last    atomic.Pointer[Timer]
	earlier [14]atomic.Pointer[Timer]
	// restarts is how many Timers were reset after they were stopped. In shard.n neither is
	// counted.
	restarts atomic.Uint64
}

// own returns the stripe of the goroutine that calls it: by the address of its stack, which
// tells it from others without a visit to memory.
func (l *stoppedTimers) own() *stripe {
	var here byte
	hash := uint64(uintptr(unsafe.Pointer(&here))>>11) * 0x9e3779b97f4a7c15 // Knuth's multiplicative hash
	return &l.stripes[hash/(math.MaxUint64/stripes+1)]
}

// add adds a Timer. If there is no room, it returns one that the caller must settle.
func (l *stoppedTimers) add(t *Timer) (unsettled *Timer) {
	room := l.room.Load()
	if room == 0 {
		return t
	}
	own := l.own()
	last := own.last.Swap(t)
	if last == nil {
		l.s.trim.soon()
	} else if last != t && last.state.Load() == stopped && !own.addEarlier(last, int(room)-1) {
		return last
	}
	if l.room.Load() < room {
		return t // what is here may have been settled before t came
	}
	return nil
}

// addEarlier reports false if there is no room for t among the first places of earlier.
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

// setRoom sets the room to what n Timers in the wheel allow, and reports whether it has shrunk.
func (l *stoppedTimers) setRoom(n int) bool {
	room := int32(min(max(n-1, 0)/stripes, len(stripe{}.earlier)+1))
	was := l.room.Load()
	if room != was {
		l.room.Store(room)
	}
	return room < was
}

// settleLocked has the Timers leave the wheel that are stopped.
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

// settleTimerLocked has a Timer leave the wheel if it is stopped.
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
