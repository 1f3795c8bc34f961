package idle

import (
	"sync"
	"time"
)

// A stripe holds a random part of a Monitor's entries, under one lock. No callback runs
// while the lock is held.
type stripe struct {
	core *core // set once

	mu sync.Mutex
	// mu guards the fields below. It may be held during calls of the Scheduler.

	rings map[ringKey]*entryRing // all rings that are not empty
	stats Stats                  // without Watching

	_ [64]byte // so that the locks of two stripes do not share a cache line
}

// slackOf returns how late the check of an entry with this timeout may be.
func (c *core) slackOf(timeout time.Duration) time.Duration {
	return time.Duration(c.slack * float64(timeout))
}

// checkEntryLocked decides about an entry that was taken out of its ring. If it returns
// true, the entry is evicted, and the caller must run the callback. Otherwise the entry is
// in the ring of its next check, or the Monitor is closed and TakeLeftover returns the
// entry.
func (st *stripe) checkEntryLocked(e *entry, isRecheck bool) (last Moment, idle bool) {
	c, timeout := st.core, e.timeout.Load()
	if c.closed.Load() {
		st.handBackLocked(e)
		return 0, false
	}
	for {
		// Read stateAndTime before the clock. If the entry is touched after this line,
		// the swap below fails.
		w := e.stateAndTime.Load()
		last = unpackMoment(w)
		now := c.now()
		if last == unknownMoment {
			e.stateAndTime.CompareAndSwap(w, packLive(now))
			continue
		}
		if d := timeUntilIdle(timeout, last, now); d > 0 {
			st.checkAgainLocked(e, now, d, false)
			return 0, false
		}
		// The process may have been suspended, and bytes may wait in its sockets: check a
		// second time, after a quarter of the timeout.
		if late := time.Duration(now-last) - timeout; c.recheckIfLate && !isRecheck && late > timeout/4+c.tick+c.slackOf(timeout) {
			st.checkAgainLocked(e, now, timeout/4, true)
			return 0, false
		}
		if e.stateAndTime.CompareAndSwap(w, w|evicted) {
			st.stats.Evicted++
			return last, true
		}
	}
}

// checkAgainLocked schedules another check of an entry, d from now.
func (st *stripe) checkAgainLocked(e *entry, now Moment, d time.Duration, isRecheck bool) {
	if st.scheduleCheckLocked(e, now, d, isRecheck) != nil {
		st.handBackLocked(e) // closed meanwhile
		return
	}
	st.stats.Rearmed++
}

// handBackLocked adds an entry to leftover, if the entry is live.
func (st *stripe) handBackLocked(e *entry) {
	if e.setFinalStateLocked(handedBack) {
		st.stats.HandedBack++
		st.core.addLeftover(e)
	}
}
