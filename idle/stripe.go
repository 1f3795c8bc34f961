package idle

import (
	"sync"
	"time"
)

// A stripe guards the rings of some of a Monitor's entries, drawn at random.
// Its lock is held while the Scheduler's are taken; no user code runs under it.
type stripe struct {
	core *core // fixed

	mu sync.Mutex
	// All below is guarded by mu.

	rings map[ringKey]*ring // those that have entries
	n     Stats

	_ [64]byte // keeps two stripes' locks out of one cache line
}

// slackOf returns how late an eviction may be for its slack.
func (c *core) slackOf(timeout time.Duration) time.Duration {
	return time.Duration(c.slack * float64(timeout))
}

// checkLocked looks at an entry that was taken out of its ring. It reports whether the entry
// was idle and is evicted now: then its callback must run. If not, the entry is put in
// another ring, or handed back if the Monitor is closed.
//
// If the check comes much too late, the whole process may have been stopped, and bytes may
// wait in its sockets. Then a patient Monitor does not evict at once, but at a second check
// a little later.
func (st *stripe) checkLocked(e *entry, second bool) (last Moment, idle bool) {
	c, timeout := st.core, e.timeout.Load()
	if c.closed.Load() {
		st.handBackLocked(e)
		return 0, false
	}
	for {
		// The word is read before the clock: if the entry is touched after this, the
		// swap below fails.
		w := e.word.Load()
		last = moment(w)
		now := c.now()
		if last == away {
			e.word.CompareAndSwap(w, word(now))
			continue
		}
		if d := remaining(timeout, last, now); d > 0 {
			st.rearmLocked(e, now, d, false)
			return 0, false
		}
		if late := time.Duration(now-last) - timeout; c.patient && !second && late > timeout/4+c.tick+c.slackOf(timeout) {
			st.rearmLocked(e, now, timeout/4, true)
			return 0, false
		}
		if e.word.CompareAndSwap(w, w|evicted) {
			st.n.Evicted++
			return last, true
		}
	}
}

func (st *stripe) rearmLocked(e *entry, now Moment, d time.Duration, second bool) {
	if st.insertLocked(e, now, d, second) != nil {
		st.handBackLocked(e) // Close comes in between
		return
	}
	st.n.Rearmed++
}

// handBackLocked leaves an entry for TakeLeftover, if it is live.
func (st *stripe) handBackLocked(e *entry) {
	if e.leaveLocked(handedBack) {
		st.n.HandedBack++
		st.core.leave(e)
	}
}
