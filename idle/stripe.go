package idle

import (
	"sync"
	"time"
)

// A stripe holds a random part of a Monitor's entries, under one lock. The lock may be
// held during calls of the Scheduler, but not while user code runs.
type stripe struct {
	core *core // set once

	mu sync.Mutex
	// mu guards the fields below.

	rings map[ringKey]*ring // all rings that are not empty
	stats Stats             // without Watching

	_ [64]byte // so that the locks of two stripes do not share a cache line
}

// slackOf returns how late the check of an entry with this timeout may be.
func (c *core) slackOf(timeout time.Duration) time.Duration {
	return time.Duration(c.slack * float64(timeout))
}

// checkLocked decides about an entry that was taken out of its ring:
//
//   - If the Monitor is closed, checkLocked hands the entry back.
//   - If the entry is idle, checkLocked marks it evicted and returns true. The caller
//     must then run the callback.
//   - Otherwise checkLocked puts the entry into the ring of its next check.
//
// If the check is much too late, the process may have been suspended, and bytes may wait
// in its sockets. So if c.recheck is set, checkLocked does not evict, but schedules a
// second check after a quarter of the timeout. For this check, isRecheck is true.
func (st *stripe) checkLocked(e *entry, isRecheck bool) (last Moment, idle bool) {
	c, timeout := st.core, e.timeout.Load()
	if c.closed.Load() {
		st.handBackLocked(e)
		return 0, false
	}
	for {
		// Read the word before the clock. If the entry is touched after this line, the
		// swap below fails.
		w := e.word.Load()
		last = momentOf(w)
		now := c.now()
		if last == unknown {
			e.word.CompareAndSwap(w, liveWord(now))
			continue
		}
		if d := remaining(timeout, last, now); d > 0 {
			st.rearmLocked(e, now, d, false)
			return 0, false
		}
		if late := time.Duration(now-last) - timeout; c.recheck && !isRecheck && late > timeout/4+c.tick+c.slackOf(timeout) {
			st.rearmLocked(e, now, timeout/4, true)
			return 0, false
		}
		if e.word.CompareAndSwap(w, w|evicted) {
			st.stats.Evicted++
			return last, true
		}
	}
}

func (st *stripe) rearmLocked(e *entry, now Moment, d time.Duration, isRecheck bool) {
	if st.insertLocked(e, now, d, isRecheck) != nil {
		st.handBackLocked(e) // closed meanwhile
		return
	}
	st.stats.Rearmed++
}

// handBackLocked adds an entry to leftover, if the entry is live.
func (st *stripe) handBackLocked(e *entry) {
	if e.finishLocked(handedBack) {
		st.stats.HandedBack++
		st.core.addLeftover(e)
	}
}
