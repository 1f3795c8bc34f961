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
	// holds counts, for each held entry, the calls of Hold without a Release. It is nil if
	// no entry is held.
	holds map[*entry]int

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
		if st.holds[e] > 0 {
			st.checkAgainLocked(e, now, timeout, false)
			return 0, false
		}
		// The process was suspended, and heartbeats may wait in its sockets: check a second
		// time, a quarter of the timeout after it went on.
		if grace := timeout/4 - time.Duration(now-Moment(c.resumedAt.Load())); grace > 0 && !isRecheck {
			st.checkAgainLocked(e, now, grace, true)
			return 0, false
		}
		if at := c.delivered(e, now); at > last {
			e.stateAndTime.CompareAndSwap(w, packLive(at))
			continue
		}
		if c.asks {
			// The entry stays live while the func of WithOnIdle runs: see core.decide.
			st.holdLocked(e)
			st.checkAgainLocked(e, now, timeout, false)
			return last, true
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

// pauseLimit is how late a check must be for its process to count as suspended. Beside
// computing goroutines, checks are a few milliseconds late.
const pauseLimit = 100 * time.Millisecond

// notePause notes that the process was suspended, if the check of a ring is too late.
func (r *entryRing) notePause() {
	c := r.stripe.core
	if now := c.now(); now != unknownMoment && time.Duration(now-r.checkAt) > pauseLimit+c.tick {
		c.resumedAt.Store(int64(now))
	}
}
