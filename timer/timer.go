package timer

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickless/tickless/timingwheel"
)

// A Timer is a single event on a Scheduler, as [time.Timer] is. It sends the current time
// on C, or runs the function of AfterFunc. Make one with NewTimer or AfterFunc.
//
// Its methods work as those of time.Timer since Go 1.23: after Stop or Reset, no earlier
// value is received. Two things differ: C has a buffer of one, which len and cap report.
// A pending Timer is not garbage before it fires or is stopped.
type Timer struct {
	C <-chan time.Time

	// sh is the Timer's shard, set once. It is nil in a zero Timer, and in one that uses
	// a timer of package time.
	sh *shard
	// payload is the Timer's callback or channel, or its timer of package time. It is set
	// once.
	payload payload
	// id identifies the Timer's last entry or fallback. It is stale after the Timer has
	// fired or was stopped. Guarded by sh.mu.
	id timingwheel.ID

	// A Timer takes one cache line: 64 bytes.

	// mu guards state, which code may load without mu. In the states pendingInWheel and
	// stoppedInWheel it also guards id, deadline and wheelDeadline: see entry.go.
	mu sync.Mutex
	// deadline is when the Timer fires. wheelDeadline is when its entry falls due, at
	// deadline or earlier.
	deadline, wheelDeadline int64
	state                   atomic.Uint32
	// tag is the type of the payload, set once. The field C cannot tell the type, because
	// users may assign to C.
	tag uint8
	// wasReset is true after the first Reset. Later Resets may use an entry that holds
	// the *Timer. Guarded by sh.mu.
	wasReset bool
}

// AfterFunc waits for d and then runs f on the Scheduler's executor. Stop on the returned
// Timer cancels the call. Its C is nil.
func (s *Scheduler) AfterFunc(d time.Duration, f func()) *Timer {
	return s.newTimer(s.now(), d, nil, funcPayload(f), tagFunc)
}

// NewTimer returns a Timer that sends the current time on its channel after d.
func (s *Scheduler) NewTimer(d time.Duration) *Timer {
	c := make(chan time.Time, 1)
	return s.newTimer(s.now(), d, c, chanPayload(c), tagChan)
}

func (s *Scheduler) newTimer(now int64, d time.Duration, c chan time.Time, p payload, tag uint8) *Timer {
	t := &Timer{C: c, sh: s.lockShard(), payload: p, tag: tag}
	t.startLocked(now, d)
	t.sh.unlock()
	return t
}

// startLocked starts the Timer, in the wheel if possible and otherwise as a fallback.
func (t *Timer) startLocked(now int64, d time.Duration) {
	id, err := t.sh.startLocked(now, d, t.sh.slackFor(d), t.payload, t.tag)
	if err != nil {
		id = t.sh.startFallbackLocked(d, t.payload, t.tag)
	}
	t.id = id
}

// After is NewTimer(d).C. The Scheduler keeps the timer until it fires. In a loop, make
// one timer with [Scheduler.NewTimer] and reset it. If the Scheduler is closed meanwhile,
// nothing is sent.
func (s *Scheduler) After(d time.Duration) <-chan time.Time { return s.NewTimer(d).C }

// Stop prevents the Timer from firing, or removes a sent value that was not yet received.
// Then it reports true. It reports false if the Timer had fired before or was already
// stopped. Stop does not wait for the function of AfterFunc. On a zero Timer, Stop
// panics.
func (t *Timer) Stop() bool {
	if t.sh == nil {
		return t.stdTimer("Stop").Stop()
	}
	if t.state.Load() >= pendingInWheel {
		if wasActive, done := t.stopInWheel(); done {
			return wasActive
		}
	}
	t.sh.mu.Lock()
	wasActive := t.stopLocked()
	t.sh.unlock()
	return wasActive
}

func (t *Timer) stopLocked() (wasActive bool) {
	t.mu.Lock()
	oldState := t.state.Load()
	if oldState >= pendingInWheel {
		t.state.Store(stoppedInWheel)
	}
	t.mu.Unlock()
	if oldState >= pendingInWheel {
		t.sh.removeTimerIfStoppedLocked(t)
		t.sh.removeStoppedTimersLocked()
		return oldState == pendingInWheel
	}
	return t.sh.stopLocked(t.id) || t.removeSentValueLocked()
}

// Reset makes the Timer expire after d from now, and reports whether the Timer was
// active. If a value was sent but not yet received, Reset removes it and reports true.
//
// If a Timer of AfterFunc has fired, Reset makes its function run again. Reset does not
// wait for an earlier run. On a zero Timer, Reset panics.
func (t *Timer) Reset(d time.Duration) bool {
	if t.sh == nil {
		return t.stdTimer("Reset").Reset(d)
	}
	sh := t.sh
	now := sh.s.now()
	if t.state.Load() >= pendingInWheel {
		if wasActive, done := t.resetInWheel(now, d); done {
			return wasActive
		}
	}
	sh.mu.Lock()
	wasActive := t.resetLocked(now, d)
	sh.unlock()
	return wasActive
}

func (t *Timer) resetLocked(now int64, d time.Duration) (wasActive bool) {
	if wasActive, done := t.resetInWheelLocked(now, d); done {
		return wasActive
	}
	if t.wasReset && t.canAddTimerEntry(d) {
		return t.addTimerEntryLocked(now, d)
	}
	t.wasReset = true
	if t.sh.resetLocked(now, t.id, d, t.sh.slackFor(d)) {
		return true
	}
	wasActive = t.sh.stopFallbackLocked(t.id) || t.removeSentValueLocked()
	t.startLocked(now, d)
	return wasActive
}

// Deadline returns the time for which the Timer is set, without slack. It reports false
// if the Timer is not pending, or was made inside a testing/synctest bubble by a
// package-level function. O(1).
func (t *Timer) Deadline() (time.Time, bool) {
	if t.sh == nil {
		return time.Time{}, false
	}
	t.sh.mu.Lock()
	at, ok := t.deadlineLocked()
	t.sh.mu.Unlock()
	if !ok {
		return time.Time{}, false
	}
	return t.sh.s.timeAt(at), true
}

func (t *Timer) deadlineLocked() (int64, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch t.state.Load() {
	case pendingInWheel:
		return t.deadline, true
	case stoppedInWheel:
		return 0, false
	}
	if f := t.sh.fallbacks.byID[t.id]; f != nil {
		return int64(f.dueAt.Sub(t.sh.s.epoch)), true
	}
	return t.sh.wheel.Deadline(t.id)
}

// stdTimer returns the timer of package time that t uses. It panics if t is a zero Timer.
func (t *Timer) stdTimer(method string) *time.Timer {
	if t.payload == (payload{}) {
		panic("timer: " + method + " called on uninitialized Timer")
	}
	return t.payload.stdTimer()
}

// removeSentValueLocked removes a sent value from the channel, and reports whether there
// was one. No value is sent while the shard's lock is held.
func (t *Timer) removeSentValueLocked() bool {
	return t.tag == tagChan && removeSentValue(t.payload.channel())
}

// removeSentValue removes a sent value from the channel, and reports whether there was
// one.
func removeSentValue(c chan time.Time) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
