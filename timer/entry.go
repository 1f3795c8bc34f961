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
// From the second Reset on, a Timer's entry in the wheel holds the *Timer instead of its
// callback: it is a timer entry. Stop, and Reset to a later time, then need only
// Timer.mu: they change the Timer, and leave the entry in its bucket. When the entry
// falls due, the Timer fires, or the entry moves to the Timer's new deadline.
//
// A stopped Timer is added to stoppedTimers. If it is reset soon, it uses its entry
// again: see BenchmarkStopReset. Otherwise its entry is removed later. With slack, an
// entry never holds a *Timer.
//
// Rules:
//
//   - Timer.mu guards the state. If Stop, Reset, the poller and Close race, the first to
//     lock Timer.mu wins.
//   - To remove or move a Timer's entry, take the shard's lock before Timer.mu.
//   - The entry's deadline in the wheel is never later than the Timer's deadline.
//
// The states and transitions. A transition with a star also holds the shard's lock:
//
//	              Reset *                   Close *
//	notInWheel ──────────▶ pendingInWheel ─────────▶ handedBack
//	  ▲  ▲                     │ │  ▲
//	  │  └────── it fires * ───┘ │  │ Reset
//	  │                    Stop  ▼  │
//	  └────────────────── stoppedInWheel
//	    removed, or due *
const (
	// notInWheel: no entry holds the *Timer. The Timer may still be pending: as a
	// fallback, or if an entry holds its callback.
	notInWheel = iota
	// handedBack: Close has removed the entry that held the *Timer.
	handedBack
	// pendingInWheel: an entry holds the *Timer, which will fire.
	pendingInWheel
	// stoppedInWheel: an entry holds the *Timer, which was stopped.
	stoppedInWheel
)

// stopInWheel stops a Timer whose entry holds the *Timer. wasActive reports whether the
// Timer was pending. If no entry holds the *Timer, stopInWheel does nothing, and done is
// false.
func (t *Timer) stopInWheel() (wasActive, done bool) {
	t.mu.Lock()
	oldState := t.state.Load()
	if oldState == pendingInWheel {
		t.state.Store(stoppedInWheel)
	}
	t.mu.Unlock()
	if oldState == pendingInWheel {
		if unlisted := t.sh.stoppedTimers.addTimer(t); unlisted != nil {
			t.sh.mu.Lock()
			t.sh.removeTimerIfStoppedLocked(unlisted)
			t.sh.removeStoppedTimersLocked()
			t.sh.unlock()
		}
	}
	return oldState == pendingInWheel, oldState >= pendingInWheel
}

// resetInWheel resets a Timer to a later time, without the shard's lock. wasActive
// reports whether the Timer was pending. If a reset needs that lock, resetInWheel does
// nothing, and done is false.
func (t *Timer) resetInWheel(now int64, d time.Duration) (wasActive, done bool) {
	if d <= 0 {
		return false, false
	}
	deadline := deadlineAfter(now, d)
	t.mu.Lock()
	defer t.mu.Unlock()
	oldState := t.state.Load()
	// Close sets closed before it locks this Timer. If closed is false here, Close locks
	// the Timer later, and hands it back.
	if oldState < pendingInWheel || deadline < t.wheelDeadline || t.sh.s.closed.Load() {
		return false, false
	}
	t.deadline = deadline
	if oldState == stoppedInWheel {
		t.state.Store(pendingInWheel)
		t.sh.stoppedTimers.callerStripe().restarts.Add(1)
	}
	return oldState == pendingInWheel, true
}

// resetInWheelLocked is like resetInWheel, for any deadline. If done is false, no entry
// holds the *Timer, and the caller must reset the Timer.
func (t *Timer) resetInWheelLocked(now int64, d time.Duration) (wasActive, done bool) {
	sh := t.sh
	t.mu.Lock()
	oldState := t.state.Load()
	if oldState < pendingInWheel {
		t.mu.Unlock()
		return false, false
	}
	if d > 0 && (oldState == pendingInWheel || !sh.s.closed.Load()) {
		deadline := deadlineAfter(now, d)
		sh.wheel.Observe(now)
		if sh.wheel.Move(t.id, deadline) {
			t.deadline, t.wheelDeadline = deadline, deadline
			if oldState == stoppedInWheel {
				t.state.Store(pendingInWheel)
				sh.counts.stopped++
				sh.counts.started++
			}
			t.mu.Unlock()
			return oldState == pendingInWheel, true
		}
	}
	sh.setNotInWheelLocked(t)
	t.mu.Unlock()
	sh.wheel.Remove(t.id)
	sh.wakePollerIfEmptyLocked(true)
	if oldState == pendingInWheel {
		sh.fireNowLocked(t.payload, t.tag)
	}
	sh.removeStoppedTimersLocked()
	return oldState == pendingInWheel, oldState == pendingInWheel
}

// canAddTimerEntry reports whether a reset may add an entry that holds the *Timer.
func (t *Timer) canAddTimerEntry(d time.Duration) bool {
	s := t.sh.s
	return d > 0 && s.config.slack.maxSlack == 0 && !s.closed.Load()
}

// addTimerEntryLocked resets a Timer in state notInWheel by adding an entry that holds
// the *Timer. It reports whether the Timer was active.
func (t *Timer) addTimerEntryLocked(now int64, d time.Duration) (wasActive bool) {
	sh, oldID := t.sh, t.id
	deadline := deadlineAfter(now, d)
	sh.wheel.Observe(now)
	id, ok := sh.wheel.AddTagged(deadline, 0, timerPayload(t), tagTimer)
	_, wasActive = sh.removeLocked(oldID)
	if !wasActive {
		wasActive = sh.stopFallbackLocked(oldID) || t.removeSentValueLocked()
		sh.counts.started++
	}
	if !ok {
		sh.fireNowLocked(t.payload, t.tag)
		return wasActive
	}
	if sh.stoppedTimers == nil {
		sh.stoppedTimers = &stoppedTimers{s: sh.s}
	}
	sh.numTimerEntries++
	sh.stoppedTimers.setMaxPerStripe(sh.numTimerEntries)
	t.mu.Lock()
	t.id, t.deadline, t.wheelDeadline = id, deadline, deadline
	t.state.Store(pendingInWheel)
	t.mu.Unlock()
	return wasActive
}

// setNotInWheelLocked updates the state of a Timer whose entry is removed from the wheel.
// The caller holds the shard's lock and Timer.mu.
func (sh *shard) setNotInWheelLocked(t *Timer) {
	if t.state.Load() == stoppedInWheel {
		sh.counts.stopped++
	}
	t.state.Store(notInWheel)
	sh.numTimerEntries--
}

// expireTimersLocked replaces each *Timer in the slice expired by its callback or
// channel. It leaves out Timers that do not fire.
func (sh *shard) expireTimersLocked(expired []timingwheel.Expired[payload]) []timingwheel.Expired[payload] {
	n := 0
	for i := range expired {
		if x := &expired[i]; x.Tag != tagTimer || sh.expireTimerLocked(x) {
			expired[n] = *x
			n++
		}
	}
	clear(expired[n:])
	sh.removeStoppedTimersLocked()
	return expired[:n]
}

// expireTimerLocked reports whether the *Timer in a due entry x fires. If it does, x gets
// the Timer's callback or channel. If not, the Timer was stopped, or the entry moves to
// the Timer's later deadline.
func (sh *shard) expireTimerLocked(x *timingwheel.Expired[payload]) bool {
	t := x.Value.timer()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state.Load() == stoppedInWheel {
		sh.setNotInWheelLocked(t)
		return false
	}
	if t.deadline != t.wheelDeadline {
		if id, ok := sh.wheel.AddTagged(t.deadline, 0, x.Value, tagTimer); ok {
			t.id, t.wheelDeadline = id, t.deadline
			sh.counts.cascaded++
			return false
		}
		x.Deadline, x.Due = t.deadline, t.deadline
	}
	x.Value, x.Tag = t.payload, t.tag
	sh.setNotInWheelLocked(t)
	return true
}

// copyPayloadTo sets x to the Timer's callback or channel and its deadline. It reports
// false if the Timer is neither pending nor handed back.
func (t *Timer) copyPayloadTo(x *timingwheel.Expired[payload]) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if state := t.state.Load(); state == stoppedInWheel || state == notInWheel {
		return false
	}
	x.Value, x.Tag, x.Deadline, x.Due = t.payload, t.tag, t.deadline, t.deadline
	return true
}

// handBackTimersLocked updates the state of the Timers in a wheel that Close hands back.
// It returns how many of them were stopped.
func (sh *shard) handBackTimersLocked(w *timingwheel.Wheel[payload]) (stoppedCount int) {
	if sh.numTimerEntries == 0 {
		return 0
	}
	w.Each(func(x timingwheel.Entry[payload]) {
		if x.Tag != tagTimer {
			return
		}
		t := x.Value.timer()
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.state.Load() == stoppedInWheel {
			sh.setNotInWheelLocked(t)
			stoppedCount++
			return
		}
		sh.setNotInWheelLocked(t)
		t.state.Store(handedBack)
	})
	sh.removeStoppedTimersLocked()
	return stoppedCount
}

// stoppedTimers lists stopped Timers whose entries are still in the wheel: see
// removeStoppedTimersLocked. It has several stripes, so that goroutines on different
// procs do not write to the same cache line.
type stoppedTimers struct {
	s *Scheduler
	// maxPerStripe is how many Timers a stripe may list. It falls with the number of
	// timer entries, so that no Timer stays listed when all are stopped.
	maxPerStripe atomic.Int32
	_            [52]byte // fills the cache line
	stripes      [numStripes]stripe
}

const numStripes = 8

// A stripe takes two cache lines.
type stripe struct {
	// newestTimer is the Timer that was stopped last. When another Timer is stopped, this
	// one moves to olderTimers, unless it was reset meanwhile.
	newestTimer atomic.Pointer[Timer]
	olderTimers [14]atomic.Pointer[Timer]
	// restarts counts the Timers that were stopped and then reset. counts.started and
	// counts.stopped leave them out.
	restarts atomic.Uint64
}

// callerStripe returns the stripe of the calling goroutine. The address of the
// goroutine's stack determines it.
func (l *stoppedTimers) callerStripe() *stripe {
	var here byte
	hash := uint64(uintptr(unsafe.Pointer(&here))>>11) * 0x9e3779b97f4a7c15 // Knuth's multiplicative hash
	return &l.stripes[hash/(math.MaxUint64/numStripes+1)]
}

// addTimer lists a stopped Timer. If the stripe is full, addTimer returns a Timer that it
// could not list: the caller must remove that Timer's entry.
func (l *stoppedTimers) addTimer(t *Timer) (unlisted *Timer) {
	maxPerStripe := l.maxPerStripe.Load()
	if maxPerStripe == 0 {
		return t
	}
	stripe := l.callerStripe()
	previousTimer := stripe.newestTimer.Swap(t)
	if previousTimer == nil {
		l.s.trimmer.scheduleTrim()
	} else if previousTimer != t && previousTimer.state.Load() == stoppedInWheel && !stripe.addOlder(previousTimer, int(maxPerStripe)-1) {
		return previousTimer
	}
	if l.maxPerStripe.Load() < maxPerStripe {
		return t // removeStoppedTimersLocked may have passed the stripe before t was in it
	}
	return nil
}

// addOlder puts t into one of the first n elements of olderTimers. It reports false if
// all of them are in use.
func (s *stripe) addOlder(t *Timer, n int) bool {
	for i := range s.olderTimers[:n] {
		if s.olderTimers[i].Load() == nil && s.olderTimers[i].CompareAndSwap(nil, t) {
			return true
		}
	}
	return false
}

// restarts returns how many Timers were stopped and then reset.
func (l *stoppedTimers) restarts() (n uint64) {
	if l != nil {
		for i := range l.stripes {
			n += l.stripes[i].restarts.Load()
		}
	}
	return n
}

// setMaxPerStripe sets maxPerStripe for n timer entries. It reports whether
// maxPerStripe has fallen.
func (l *stoppedTimers) setMaxPerStripe(n int) bool {
	newMax := int32(min(max(n-1, 0)/numStripes, len(stripe{}.olderTimers)+1))
	oldMax := l.maxPerStripe.Load()
	if newMax != oldMax {
		l.maxPerStripe.Store(newMax)
	}
	return newMax < oldMax
}

// removeStoppedTimersLocked removes the entries of all listed Timers that are still
// stopped.
func (sh *shard) removeStoppedTimersLocked() {
	l := sh.stoppedTimers
	if l == nil {
		return
	}
	for again := true; again; again = l.setMaxPerStripe(sh.numTimerEntries) {
		for i := range l.stripes {
			sh.unlistTimerLocked(&l.stripes[i].newestTimer)
			for j := range l.stripes[i].olderTimers {
				sh.unlistTimerLocked(&l.stripes[i].olderTimers[j])
			}
		}
	}
}

func (sh *shard) unlistTimerLocked(listed *atomic.Pointer[Timer]) {
	if listed.Load() != nil {
		sh.removeTimerIfStoppedLocked(listed.Swap(nil))
	}
}

// removeTimerIfStoppedLocked removes a Timer's entry from the wheel if the Timer is
// stopped.
func (sh *shard) removeTimerIfStoppedLocked(t *Timer) {
	if t.state.Load() != stoppedInWheel {
		return
	}
	t.mu.Lock()
	mustRemove := t.state.Load() == stoppedInWheel
	if mustRemove {
		sh.setNotInWheelLocked(t)
	}
	t.mu.Unlock()
	if mustRemove {
		sh.wheel.Remove(t.id)
		sh.wakePollerIfEmptyLocked(true)
	}
}
