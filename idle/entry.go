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
//	        └──┘          └──────────────────────▶ handed back
//	    check, touched
//	    meanwhile: rearm
//
// One atomic word contains the state and the time of the last activity. A touch and an
// eviction both read the word, and then replace it by a compare-and-swap. If a touch
// swaps first, the swap of the eviction fails, and the entry is checked again. If the
// eviction swaps first, the touch finds that the entry is not live, and returns false.
//
// A touch takes no lock and moves no timer. A live entry is in exactly one ring: a list
// of entries that are checked together, when a timer fires. The check reads the time of
// the last touch.
type entry struct {
	links // nil unless the entry is live
	// word is the moment of the last activity, times 4, plus the state. The offset of
	// word must be a multiple of 8: 32-bit machines need this for 64-bit atomics.
	word atomic.Uint64
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

func liveWord(at Moment) uint64 {
	if at > unknown {
		at = maxMoment
	}
	return uint64(max(at, 0)) << 2
}

func momentOf(w uint64) Moment { return Moment(w >> 2) }

// remaining returns the time until an entry is idle. last is its last touch. The result
// is zero or negative if the entry is idle now.
func remaining(timeout time.Duration, last, now Moment) time.Duration {
	if d := timeout - time.Duration(now-last); d >= 0 || now > last {
		return d
	}
	return timeout // last is in the future, and the difference overflows
}

// Value returns the watched value.
func (e *Entry[T]) Value() T { return e.value }

// Touch records activity at the present time, and reports whether the entry is still
// watched. If so, the entry will not be evicted before its timeout has passed again. If
// not, the entry was stopped, handed back or evicted. The callback of an evicted entry
// has run, is running or will run.
func (e *Entry[T]) Touch() bool { return e.touch() }

// TouchAt is like Touch, for a caller that knows the time: see [Monitor.Now]. A touch
// never replaces a touch with a later time. If the time is in the future, the timeout
// counts from this time.
func (e *Entry[T]) TouchAt(at Moment) bool {
	e.mustStripe()
	return e.touchAt(at)
}

// Stop stops watching the entry. It returns true if this call prevents the callback from
// ever running. It returns false if the entry was already stopped, handed back or
// evicted. Stop does not wait for a running callback.
func (e *Entry[T]) Stop() bool { return e.stop() }

// SetTimeout changes the timeout and reports whether the entry is still watched. The new
// timeout counts from the last activity, so a shorter one may evict the entry at once.
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
func (e *Entry[T]) Last() Moment { return momentOf(e.word.Load()) }

func (e *entry) touch() bool { return e.touchAt(e.mustStripe().core.now()) }

// mustStripe returns the stripe of e. It panics if e is a zero Entry.
func (e *entry) mustStripe() *stripe {
	if e.stripe == nil {
		panic("idle: an Entry that was not made by Monitor.Watch")
	}
	return e.stripe
}

func (e *entry) touchAt(at Moment) bool {
	newWord := liveWord(at)
	for {
		w := e.word.Load()
		if w&stateMask != live {
			return false
		}
		if newWord <= w || e.word.CompareAndSwap(w, newWord) {
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
	st := e.mustStripe()
	st.mu.Lock()
	defer st.mu.Unlock()
	if !e.finishLocked(stopped) {
		return false
	}
	st.removeLocked(e)
	st.stats.Stopped++
	return true
}

func (e *entry) setTimeout(timeout time.Duration) bool {
	st := e.mustStripe()
	st.mu.Lock()
	defer st.mu.Unlock()
	w := e.word.Load()
	if w&stateMask != live {
		return false
	}
	oldTimeout := e.timeout.Swap(timeout)
	if now := st.core.now(); timeout < oldTimeout && now != unknown && momentOf(w) != unknown {
		// A shorter timeout needs an earlier check. For a longer one, the next check is
		// early enough.
		st.removeLocked(e)
		if st.insertLocked(e, now, remaining(timeout, momentOf(w), now), false) != nil {
			st.handBackLocked(e) // closed meanwhile
			return false
		}
	}
	return true
}
