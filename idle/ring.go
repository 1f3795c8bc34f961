package idle

import (
	"math"
	"math/bits"
	"time"
	"unsafe"

	"github.com/tickless/tickless/timer"
)

// links chain a live entry to the others of its ring. It is the first field of an entry
// and of a ring, so that each is found from it.
type links struct{ prev, next *links }

// A ring is the entries of a stripe that are checked at one moment, all by one timer: so
// an entry needs neither a timer nor a callback of its own. The stripe's lock guards it.
type ring struct {
	links // the first entry and the last; its own address if there is none
	ringKey
	stripe *stripe
	timer  timer.Handle
}

// ringKey is what the entries of a ring have in common.
type ringKey struct {
	at     Moment
	second bool // it is their second check: see stripe.checkLocked
}

// insertLocked has an entry checked in d from now, or as late as its slack allows. The error
// is ErrClosed.
func (st *stripe) insertLocked(e *entry, now Moment, d time.Duration, second bool) error {
	c := st.core
	if c.closed.Load() {
		return ErrClosed
	}
	key := ringKey{c.share(now, d, c.slackOf(e.timeout.Load())), second}
	r := st.rings[key]
	if r == nil {
		r = &ring{ringKey: key, stripe: st}
		r.prev, r.next = &r.links, &r.links
		var err error
		if r.timer, err = c.s.Start(time.Duration(key.at-now), r.expire); err != nil {
			return ErrClosed // Close comes just now
		}
		st.rings[key] = r
	}
	e.prev, e.next = r.prev, &r.links
	e.prev.next, e.next.prev = &e.links, &e.links
	return nil
}

// share returns the moment d from now, or a later one that others share: within the slack,
// or else at the end of its tick.
func (c *core) share(now Moment, d, slack time.Duration) Moment {
	if d <= 0 {
		return now
	}
	grain := Moment(c.tick)
	if slack > c.tick {
		grain = 1 << (bits.Len64(uint64(slack)) - 1)
	}
	at := now + Moment(d)
	if at < now || at > math.MaxInt64-grain {
		return math.MaxInt64 // the sum overflows
	}
	return (at + grain - 1) / grain * grain
}

// removeLocked takes a live entry out of its ring, and ends a ring that is then empty.
func (st *stripe) removeLocked(e *entry) {
	prev, next := e.prev, e.next
	prev.next, next.prev = next, prev
	e.prev, e.next = nil, nil
	if prev == next {
		r := (*ring)(unsafe.Pointer(prev))
		r.timer.Stop()
		delete(st.rings, r.ringKey)
	}
}

// expire is what the ring's timer runs: it checks each entry of the ring.
func (r *ring) expire() {
	for more := true; more; {
		var e *entry
		var last Moment
		if e, last, more = r.checkSome(); e != nil {
			r.stripe.core.evict(e, last)
		}
	}
}

// checkSome checks entries of the ring until it has evicted one, which it returns, or has
// checked so many that others may want the lock.
func (r *ring) checkSome() (e *entry, last Moment, more bool) {
	r.stripe.mu.Lock()
	defer r.stripe.mu.Unlock()
	for range 64 {
		if r.next == &r.links {
			return nil, 0, false
		}
		e := (*entry)(unsafe.Pointer(r.next))
		r.stripe.removeLocked(e)
		if last, idle := r.stripe.checkLocked(e, r.second); idle {
			return e, last, true
		}
	}
	return nil, 0, true
}
