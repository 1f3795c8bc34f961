package idle

import (
	"math/bits"
	"time"

	"github.com/tickless/tickless/timer"
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
//	Watch   │  ▼   expire │ silent for its timeout
//	──────▶ live ─────────┼──────────────────────▶ evicted, callback
//	        ▲  │          │ the Monitor is closed
//	        └──┘          └──────────────────────▶ handed back
//	    expire, touched
//	     meanwhile: rearm
//
// The state and the time of the last activity are one word. A touch replaces the
// word of a live entry by a later one. Each arrow out of live replaces the very
// word that it was decided on: so if a touch comes in between, the decision is
// made again, and if the touch comes after, it finds the entry not live and
// reports false. There is no way back to live.
//
// A touch takes no lock and does not know of the timer. While the entry is
// live there is exactly one timer for it, or one call of expire on its way;
// expire finds out what the touches were.
type entry struct {
	// word is the moment of the last activity, times 4, plus the state. First,
	// for its alignment on 32-bit machines.
	word atomic.Uint64
	// period is written under its stripe's lock and read anywhere.
	period atomic.Pointer[period]
	// timer is guarded by the stripe's lock. Once the timer has fired it names
	// nothing.
	timer timer.Handle
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

// A period is a timeout and the stripe that it belongs to. Entries of one
// timeout share it: a word each instead of two.
type period struct {
	stripe  *stripe
	timeout time.Duration
}

// remaining returns how long an entry that was last touched at a moment has
// before it is idle; zero or less if it is by now.
func (p *period) remaining(last, now Moment) time.Duration {
	if d := p.timeout - time.Duration(now-last); d >= 0 || now > last {
		return d
	}
	return p.timeout // last lies ahead, and the sum overflows
}

// rechecks is the least number of parts into which the shared moments of rechecking
// divide a timeout.
const rechecks = 64

// recheckIn returns in how long to check an entry again that will be idle in d.
//
// While heartbeats come, each check only finds that the entry is not idle, and the
// wake-up for it costs more than the check. So an entry that was touched is checked a
// little early, at moments that many entries share. Only if it has not been touched
// since, the next check has to be punctual. The moments of one timeout are among
// those of all shorter ones.
func (p *period) recheckIn(now Moment, d time.Duration) time.Duration {
	grain := uint64(1) << (bits.Len64(uint64(p.timeout/rechecks)|1) - 1)
	if grain <= uint64(p.stripe.core.tick) {
		return d // they share the tick as it is
	}
	if at := (uint64(now) + uint64(d)) &^ (grain - 1); at > uint64(now) {
		return time.Duration(at - uint64(now))
	}
	return d
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
	e.current()
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
func (e *Entry[T]) Timeout() time.Duration { return e.current().timeout }

// Last returns the moment of the last activity, also when the entry is no longer
// watched.
func (e *Entry[T]) Last() Moment { return moment(e.word.Load()) }

func (e *entry) touch() bool { return e.touchAt(e.current().stripe.core.now()) }

// current returns the entry's period.
func (e *entry) current() *period {
	p := e.period.Load()
	if p == nil {
		panic("idle: an Entry that was not made by Monitor.Watch")
	}
	return p
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
	st := e.current().stripe
	st.mu.Lock()
	defer st.mu.Unlock()
	if !e.leaveLocked(stopped) {
		return false
	}
	// If the timer has just fired, expire waits for the lock and will find the
	// entry stopped.
	e.timer.Stop()
	st.n.Stopped++
	return true
}

func (e *entry) setTimeout(timeout time.Duration) bool {
	st := e.current().stripe
	st.mu.Lock()
	defer st.mu.Unlock()
	old := e.period.Load()
	w := e.word.Load()
	if w&stateMask != live {
		return false
	}
	next := st.periodLocked(timeout)
	if now := st.core.now(); timeout < old.timeout && now != away && moment(w) != away {
		// The timer may fire too late for the shorter timeout. If it has fired already,
		// expire waits for the lock and then sees the new timeout. With a longer timeout
		// the timer fires early enough as it is.
		e.timer.MoveWithin(next.remaining(moment(w), now), st.core.slackOf(next))
	}
	e.period.Store(next)
	return true
}

// expire is what the entry's timer runs, and what Close does to an entry whose
// timer was pending.
func (e *entry) expire() { e.look(e.current().stripe.core.patient) }

// lookAgain is expire for the second look: it evicts an idle entry however late the timer
// fired.
func (e *entry) lookAgain() { e.look(false) }

// look evicts the entry if it is idle, hands it back if the Monitor is closed, and else
// starts its timer again. If the timer fired much too late, the whole process may have been
// stopped, and bytes may wait in its sockets. Then a patient look does not evict: lookAgain
// follows a little later.
func (e *entry) look(patient bool) {
	st := e.current().stripe
	st.mu.Lock()
	if st.core.closed.Load() {
		st.handBackLocked(e)
		st.mu.Unlock()
		return
	}
	for {
		// The word is read before the clock: if the entry is touched after this, the
		// swap below fails.
		w := e.word.Load()
		if w&stateMask != live {
			break
		}
		p, now := e.period.Load(), st.core.now()
		if moment(w) == away {
			e.word.CompareAndSwap(w, word(now))
			continue
		}
		if d := p.remaining(moment(w), now); d > 0 {
			st.rearmLocked(e, p.recheckIn(now, d), e.expire)
			break
		}
		if late := time.Duration(now-moment(w)) - p.timeout; patient && late > p.timeout/4+st.core.tick+st.core.slackOf(p) {
			st.rearmLocked(e, p.timeout/4, e.lookAgain)
			break
		}
		if e.word.CompareAndSwap(w, w|evicted) {
			st.n.Evicted++
			st.mu.Unlock()
			st.core.evict(e, moment(w))
			return
		}
	}
	st.mu.Unlock()
}
