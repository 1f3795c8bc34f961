package idle

import (
	"sync"
	"time"
)

// stripes is how many locks a Monitor has for everything but touches. A power of
// two.
const stripes = 32

// A stripe guards the timers of some of a Monitor's entries, drawn at random.
// Its lock is held while the Scheduler's are taken; no user code runs under it.
type stripe struct {
	core *core // fixed

	mu sync.Mutex
	// All below is guarded by mu.

	// periods are some of those that are in use: a cache, in which a timeout
	// has one place. Timeouts that fight for a place, or that are all different,
	// cost their entries 16 bytes each.
	periods [16]*period
	n       Stats

	_ [64]byte // keeps two stripes' locks out of one cache line
}

// periodLocked returns the period of a timeout.
func (st *stripe) periodLocked(timeout time.Duration) *period {
	const golden = 0x9e3779b97f4a7c15
	p := &st.periods[uint64(timeout)*golden>>60]
	if *p == nil || (*p).timeout != timeout {
		*p = &period{st, timeout}
	}
	return *p
}

// armLocked starts the entry's timer, which runs f.
func (st *stripe) armLocked(e *entry, d time.Duration, f func()) (err error) {
	e.timer, err = st.core.s.StartWithin(d, st.core.slackOf(e.period.Load()), f)
	return err
}

// slackOf returns how late an eviction may be for its slack.
func (c *core) slackOf(p *period) time.Duration { return time.Duration(c.slack * float64(p.timeout)) }

func (st *stripe) rearmLocked(e *entry, d time.Duration, f func()) {
	if st.armLocked(e, d, f) != nil {
		st.handBackLocked(e) // Close came in between
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
