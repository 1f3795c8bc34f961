package idle

import (
	"time"

	"go.uber.org/atomic"
)

// An Entry is one thing that a [Monitor] watches, or has watched. Any goroutine may
// call its methods.
type Entry[T any] struct {
	// First, so that the Monitor finds the Entry from it.
	entry
	value T
}

// entry is the part of an Entry that is the same for all T.
//
// # An entry's life
//
//	       touch                    stop
//	        ┌──┐          ┌──────────────────────▶ stopped
//	Watch   │  ▼   check  │ silent for its timeout
//	──────▶ live ─────────┼──────────────────────▶ evicted, callback
//	        ▲  │          │ the Monitor is closed
//	        └──┘          └──────────────────────▶ handed back
//	    check, touched
//	    meanwhile: rearm
//
// The state and the time of the last activity are one word. A touch replaces the
// word of a live entry by a later one. Each arrow out of live replaces the very
// word that it was decided on: so if a touch comes in between, the decision is
// made again, and if the touch comes after, it finds the entry not live and
// reports false. There is no way back to live.
//
// A touch takes no lock and does not know of timers. Under the stripe's lock, a live
// entry is in exactly one ring; when the timer of the ring fires, checkLocked finds out
// what the touches were.
type entry struct {
	links // nil unless the entry is live
	// word is the moment of the last activity, times 4, plus the state. It is aligned
	// on 32-bit machines too.
	word atomic.Uint64
	// timeout is written under the stripe's lock and read anywhere.
	timeout atomic.Duration
	stripe  *stripe // fixed by watch
}

const (
	live uint64 = iota
	evicted
	stopped
	handedBack
	stateMask = 3
)

func word(at Moment) uint64 {
	if at > away {
		at = maxMoment
	}
	return uint64(max(at, 0)) << 2
}

func moment(w uint64) Moment { return Moment(w >> 2) }

// remaining returns how long an entry that was last touched at a moment has
// before it is idle; zero or less if it is by now.
func remaining(timeout time.Duration, last, now Moment) time.Duration {
	if d := timeout - time.Duration(now-last); d >= 0 || now > last {
		return d
	}
	return timeout // last lies ahead, and the sum overflows
}

// Value returns what is watched.
func (e *Entry[T]) Value() T { return e.value }

// Touch records activity at this moment. It reports whether the entry is still
// watched. If true, the entry will not be evicted before its timeout has passed from
// now. If false, the entry was stopped or handed back, or its eviction has been
// decided; then the callback has run, is running or will run.
func (e *Entry[T]) Touch() bool { return e.touch() }

// TouchAt is like Touch, for callers that know the time, from [Monitor.Now]. An older
// touch does not replace a later one, so moments need not come in order. A moment
// ahead of the clock keeps the entry from eviction until its timeout has passed from
// then.
func (e *Entry[T]) TouchAt(at Moment) bool {
	e.made()
	return e.touchAt(at)
}

// Stop ends the watching. It reports true if this call keeps the callback from ever
// running. It reports false if there was nothing to stop: the entry was stopped or
// handed back before, or its eviction has been decided. It does not wait for a
// running callback.
func (e *Entry[T]) Stop() bool { return e.stop() }

// SetTimeout changes the timeout, which counts from the last activity. So a shorter
// one may evict at once. SetTimeout is no activity itself. It reports whether the
// entry is still watched. It panics if timeout is not positive.
func (e *Entry[T]) SetTimeout(timeout time.Duration) bool {
	checkTimeout("SetTimeout", timeout)
	return e.setTimeout(timeout)
}

// Timeout returns the timeout.
func (e *Entry[T]) Timeout() time.Duration {
	e.made()
	return e.timeout.Load()
}

// Last returns the moment of the last activity, also when the entry is no longer
// watched.
func (e *Entry[T]) Last() Moment { return moment(e.word.Load()) }

func (e *entry) touch() bool { return e.touchAt(e.made().core.now()) }

// made returns the stripe of e, which Watch has made.
func (e *entry) made() *stripe {
	if e.stripe == nil {
		panic("idle: an Entry that was not made by Monitor.Watch")
	}
	return e.stripe
}

func (e *entry) touchAt(at Moment) bool {
	next := word(at)
	for {
		w := e.word.Load()
		if w&stateMask != live {
			return false
		}
		if next <= w || e.word.CompareAndSwap(w, next) {
			return true
		}
	}
}

// leaveLocked takes a live entry to its last state, and reports false if it was
// not live. The stripe's lock is held.
func (e *entry) leaveLocked(state uint64) bool {
	for {
		w := e.word.Load()
		if w&stateMask != live {
			return false
		}
		if e.word.CompareAndSwap(w, w|state) {
			return true
		}
	}
}

func (e *entry) stop() bool {
	st := e.made()
	st.mu.Lock()
	defer st.mu.Unlock()
	if !e.leaveLocked(stopped) {
		return false
	}
	st.removeLocked(e)
	st.n.Stopped++
	return true
}

func (e *entry) setTimeout(timeout time.Duration) bool {
	st := e.made()
	st.mu.Lock()
	defer st.mu.Unlock()
	w := e.word.Load()
	if w&stateMask != live {
		return false
	}
	old := e.timeout.Swap(timeout)
	if now := st.core.now(); timeout < old && now != away && moment(w) != away {
		// The check may come too late for the shorter timeout. With a longer timeout it
		// comes early enough as it is.
		st.removeLocked(e)
		if st.insertLocked(e, now, remaining(timeout, moment(w), now), false) != nil {
			st.handBackLocked(e) // Close comes in between
			return false
		}
	}
	return true
}
