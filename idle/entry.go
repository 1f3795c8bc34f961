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
// One atomic word contains the state and the time of the last activity. A touch replaces
// the word of a live entry by a later one. Each transition out of live is a
// compare-and-swap of the word on which it was decided. If a touch comes before the swap,
// the swap fails and the decision is made again. If a touch comes after the swap, it
// finds the entry not live and reports false. No transition leads back to live.
//
// A touch takes no lock and moves no timer. A live entry is in exactly one ring, guarded
// by the stripe's lock. When the ring's timer fires, checkLocked reads the time of the
// last touch.
type entry struct {
	links // nil unless the entry is live
	// word is the moment of the last activity, times 4, plus the state. atomic.Uint64 is
	// aligned on 32-bit machines too.
	word atomic.Uint64
	// timeout is written under the stripe's lock and read without it.
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

func word(at Moment) uint64 {
	if at > unknown {
		at = maxMoment
	}
	return uint64(max(at, 0)) << 2
}

func moment(w uint64) Moment { return Moment(w >> 2) }

// remaining returns how long it takes until an entry is idle that was last touched at
// last. The result is not positive if the entry is idle now.
func remaining(timeout time.Duration, last, now Moment) time.Duration {
	if d := timeout - time.Duration(now-last); d >= 0 || now > last {
		return d
	}
	return timeout // last is in the future, and the difference overflows
}

// Value returns the watched value.
func (e *Entry[T]) Value() T { return e.value }

// Touch records activity now, and reports whether the entry is still watched. If true,
// the entry will not be evicted before its timeout has passed from now. If false, the
// entry was stopped or handed back, or its eviction has been decided, and the callback
// has run, is running or will run.
func (e *Entry[T]) Touch() bool { return e.touch() }

// TouchAt is like Touch, for callers that know the time, from [Monitor.Now]. An older
// touch does not replace a later one, so moments need not come in order. If at is in the
// future, the timeout counts from at.
func (e *Entry[T]) TouchAt(at Moment) bool {
	e.made()
	return e.touchAt(at)
}

// Stop stops watching the entry. It reports true if this call has prevented the callback
// from ever running. It reports false if the entry was already stopped or handed back, or
// if its eviction has been decided. Stop does not wait for a running callback.
func (e *Entry[T]) Stop() bool { return e.stop() }

// SetTimeout changes the timeout, which counts from the last activity. So a shorter
// timeout may evict the entry at once. SetTimeout does not count as activity. It reports
// whether the entry is still watched. It panics if timeout is not positive.
func (e *Entry[T]) SetTimeout(timeout time.Duration) bool {
	checkTimeout("SetTimeout", timeout)
	return e.setTimeout(timeout)
}

// Timeout returns the timeout.
func (e *Entry[T]) Timeout() time.Duration {
	e.made()
	return e.timeout.Load()
}

// Last returns the moment of the last activity, even if the entry is no longer watched.
func (e *Entry[T]) Last() Moment { return moment(e.word.Load()) }

func (e *entry) touch() bool { return e.touchAt(e.made().core.now()) }

// made returns the stripe of e. It panics if e is a zero Entry.
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

// finishLocked moves a live entry to a final state. It reports false if the entry is not
// live. The caller holds the stripe's lock.
func (e *entry) finishLocked(state uint64) bool {
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
	if !e.finishLocked(stopped) {
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
	if now := st.core.now(); timeout < old && now != unknown && moment(w) != unknown {
		// The next check may come too late for the shorter timeout. For a longer timeout
		// it comes early enough.
		st.removeLocked(e)
		if st.insertLocked(e, now, remaining(timeout, moment(w), now), false) != nil {
			st.handBackLocked(e) // Close has come in between
			return false
		}
	}
	return true
}
