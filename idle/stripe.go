package idle

import (
	"sync"
	"time"
)

// A stripe guards the rings of a random share of a Monitor's entries. Calls of the
// Scheduler are made with its lock held. No user code runs under the lock.
type stripe struct {
	core *core // set once

	mu sync.Mutex
	// All below is guarded by mu.

	rings map[ringKey]*ring // the rings that have entries
	n     Stats

	_ [64]byte // keeps the locks of two stripes out of one cache line
}

// slackOf returns how late an eviction may be because of its slack.
func (c *core) slackOf(timeout time.Duration) time.Duration {
	return time.Duration(c.slack * float64(timeout))
}

// checkLocked decides about an entry that was taken out of its ring. If the entry is
// idle, checkLocked evicts it and reports true: then the caller must run its callback.
// Otherwise it puts the entry into another ring, or hands it back if the Monitor is
// closed.
//
// If the check comes much too late, the whole process may have been stopped, and bytes
// may wait in its sockets. If c.recheck is set, checkLocked then does not evict, but
// schedules a second check a little later.
func (st *stripe) checkLocked(e *entry, second bool) (last Moment, idle bool) {
	c, timeout := st.core, e.timeout.Load()
	if c.closed.Load() {
		st.handBackLocked(e)
		return 0, false
	}
	for {
		// Read the word before the clock: if the entry is touched after this, the swap
		// below fails.
		w := e.word.Load()
		last = moment(w)
		now := c.now()
		if last == unknown {
			e.word.CompareAndSwap(w, word(now))
			continue
		}
		if d := remaining(timeout, last, now); d > 0 {
			st.rearmLocked(e, now, d, false)
			return 0, false
		}
		if late := time.Duration(now-last) - timeout; c.recheck && !second && late > timeout/4+c.tick+c.slackOf(timeout) {
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
		st.handBackLocked(e) // Close has come in between
		return
	}
	st.n.Rearmed++
}

// handBackLocked keeps an entry for TakeLeftover, if it is live.
func (st *stripe) handBackLocked(e *entry) {
	if e.finishLocked(handedBack) {
		st.n.HandedBack++
		st.core.addLeftover(e)
	}
}
