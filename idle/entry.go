package idle

import (
	"time"

	"go.uber.org/atomic"
)

// An Entry is one thing that a [Monitor] watches, or has watched. Any goroutine may call
// its methods.
type Entry[T any] struct {
	// entry must be first: see entryOf.
	entry
	value T
}

// entry is the part of an Entry that does not depend on T.
//
// # An entry's life
//
//	       touch                    stop
//	        ┌──┐          ┌──────────────────────▶ stopped
//	Watch   │  ▼   check  │ silent for its timeout
//	──────▶ live ─────────┼──────────────────────▶ evicted, callback
//	        ▲  │          │ the Monitor is closed
//	        └──┘          └──────────────────────▶ removed: see TakeLeftover
//	    check, touched
//	      meanwhile
//
// A live entry is in exactly one ring: a list of entries that are checked together, when
// a timer fires.
//
// A touch and an eviction both read the field stateAndTime, and then replace it by a
// compare-and-swap. If the touch is first, the swap of the eviction fails, and the entry
// is checked again. If the eviction is first, the touch returns false.
type entry struct {
	links // nil unless the entry is live
	// stateAndTime is the state, plus 4 times the moment of the last activity. On 32-bit
	// machines, atomics need an offset that is a multiple of 8.
	stateAndTime atomic.Uint64
	// timeout is written under the stripe's lock, and read without the lock.
	timeout atomic.Duration
	stripe  *stripe // set once, by watch
}

const (
	live uint64 = iota
	evicted
	stopped
	handedBack
	stateMask = 3
)

// packLive returns the stateAndTime of a live entry whose last activity was at.
func packLive(at Moment) uint64 {
	if at > unknownMoment {
		at = maxMoment
	}
	return uint64(max(at, 0)) << 2
}

func unpackMoment(w uint64) Moment { return Moment(w >> 2) }

// timeUntilIdle returns the time until an entry is idle: zero or negative if it is idle
// now. last is the moment of its last touch.
func timeUntilIdle(timeout time.Duration, last, now Moment) time.Duration {
	if d := timeout - time.Duration(now-last); d >= 0 || now > last {
		return d
	}
	return timeout // last is in the future, and the difference overflows
}

// Value returns the watched value.
func (e *Entry[T]) Value() T { return e.value }

// Touch records activity and reports whether the entry is still watched. If Touch returns
// true, the entry is not evicted before its timeout has passed again. If it returns
// false, the entry was stopped, evicted, or removed by Close.
func (e *Entry[T]) Touch() bool { return e.touch() }

// TouchAt is like Touch, for a caller that knows the time: see [Monitor.Now]. The timeout
// counts from this time, even if it is in the future. A time before the last activity
// changes nothing.
func (e *Entry[T]) TouchAt(at Moment) bool {
	e.mustStripe()
	return e.touchAt(at)
}

// Stop stops watching the entry. It returns true if this call prevents the callback, and
// false if the entry was no longer watched. Stop does not wait for a running callback.
func (e *Entry[T]) Stop() bool { return e.stop() }

// Hold keeps the entry from being evicted until [Entry.Release], for example while a call
// runs, and reports whether the entry is still watched. If Hold is called several times,
// each call needs its Release.
func (e *Entry[T]) Hold() bool {
	st := e.mustStripe()
	st.mu.Lock()
	defer st.mu.Unlock()
	if e.stateAndTime.Load()&stateMask != live {
		return false
	}
	st.holdLocked(&e.entry)
	return true
}

// Release ends a Hold. It is also a Touch: the timeout counts from now. Release panics if
// the entry is watched and not held.
func (e *Entry[T]) Release() bool {
	st := e.mustStripe()
	st.mu.Lock()
	defer st.mu.Unlock()
	if !e.touch() {
		return false
	}
	if !st.releaseLocked(&e.entry) {
		panic("idle: Release of an entry that is not held")
	}
	return true
}

func (st *stripe) holdLocked(e *entry) {
	if st.holds == nil {
		st.holds = map[*entry]int{}
	}
	st.holds[e]++
}

// releaseLocked undoes a holdLocked. It reports false if the entry is not held.
func (st *stripe) releaseLocked(e *entry) bool {
	switch st.holds[e] {
	case 0:
		return false
	case 1:
		delete(st.holds, e)
	default:
		st.holds[e]--
	}
	return true
}

// SetTimeout changes the timeout and reports whether the entry is still watched. The
// timeout counts from the last activity: if it has already passed, the entry is evicted.
// SetTimeout panics if timeout is not positive.
func (e *Entry[T]) SetTimeout(timeout time.Duration) bool {
	checkTimeout("SetTimeout", timeout)
	return e.setTimeout(timeout)
}

// Timeout returns the timeout.
func (e *Entry[T]) Timeout() time.Duration {
	e.mustStripe()
	return e.timeout.Load()
}

// Last returns the moment of the last activity, even if the entry is no longer watched.
func (e *Entry[T]) Last() Moment { return unpackMoment(e.stateAndTime.Load()) }

func (e *entry) touch() bool { return e.touchAt(e.mustStripe().core.now()) }

// mustStripe returns the stripe of e. It panics if e is a zero Entry.
func (e *entry) mustStripe() *stripe {
	if e.stripe == nil {
		panic("idle: an Entry that was not made by Monitor.Watch")
	}
	return e.stripe
}

func (e *entry) touchAt(at Moment) bool {
	newValue := packLive(at)
	for {
		w := e.stateAndTime.Load()
		if w&stateMask != live {
			return false
		}
		if newValue <= w || e.stateAndTime.CompareAndSwap(w, newValue) {
			return true
		}
	}
}

// setFinalStateLocked gives a live entry its final state. It returns false if the entry
// is not live. The caller holds the stripe's lock.
func (e *entry) setFinalStateLocked(state uint64) bool {
	delete(e.stripe.holds, e)
	for {
		w := e.stateAndTime.Load()
		if w&stateMask != live {
			return false
		}
		if e.stateAndTime.CompareAndSwap(w, w|state) {
			return true
		}
	}
}

func (e *entry) stop() bool {
	st := e.mustStripe()
	st.mu.Lock()
	defer st.mu.Unlock()
	if !e.setFinalStateLocked(stopped) {
		return false
	}
	st.removeFromRingLocked(e)
	st.stats.Stopped++
	return true
}

func (e *entry) setTimeout(timeout time.Duration) bool {
	st := e.mustStripe()
	st.mu.Lock()
	defer st.mu.Unlock()
	w := e.stateAndTime.Load()
	if w&stateMask != live {
		return false
	}
	oldTimeout := e.timeout.Swap(timeout)
	if now := st.core.now(); timeout < oldTimeout && now != unknownMoment && unpackMoment(w) != unknownMoment {
		// A shorter timeout needs an earlier check. For a longer one, the next check is
		// early enough.
		st.removeFromRingLocked(e)
		if st.scheduleCheckLocked(e, now, timeUntilIdle(timeout, unpackMoment(w), now), false) != nil {
			st.handBackLocked(e) // closed meanwhile
			return false
		}
	}
	return true
}
