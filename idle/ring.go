package idle

import (
	"math"
	"math/bits"
	"time"
	"unsafe"

	"github.com/tickless/tickless/timer"
)

// links link a live entry to its neighbours in a ring. They are the first field of an
// entry and of a ring, so that a pointer to links can be converted to a pointer to
// either.
type links struct{ prev, next *links }

// A ring holds the entries of a stripe that are checked at one moment, by one timer. So
// an entry needs no timer and no callback of its own. The stripe's lock guards the ring.
type ring struct {
	links // the first and the last entry; the ring itself if it is empty
	ringKey
	stripe *stripe
	timer  timer.Handle
}

// ringKey is what all entries of a ring share.
type ringKey struct {
	at     Moment
	second bool // this is their second check: see stripe.checkLocked
}

// insertLocked schedules a check of e, d from now or up to its slack later. After Close
// it returns ErrClosed.
func (st *stripe) insertLocked(e *entry, now Moment, d time.Duration, second bool) error {
	c := st.core
	if c.closed.Load() {
		return ErrClosed
	}
	key := ringKey{c.checkAt(now, d, c.slackOf(e.timeout.Load())), second}
	r := st.rings[key]
	if r == nil {
		r = &ring{ringKey: key, stripe: st}
		r.prev, r.next = &r.links, &r.links
		var err error
		if r.timer, err = c.s.Start(time.Duration(key.at-now), r.expire); err != nil {
			return ErrClosed // Close has come in between
		}
		st.rings[key] = r
	}
	e.prev, e.next = r.prev, &r.links
	e.prev.next, e.next.prev = &e.links, &e.links
	return nil
}

// checkAt returns when to check an entry that is idle d from now: the next multiple of a
// power of two within the slack, or of the tick. Other entries share that moment.
func (c *core) checkAt(now Moment, d, slack time.Duration) Moment {
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

// removeLocked takes a live entry out of its ring. If the ring is then empty, it removes
// the ring.
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

// expire is the function of the ring's timer. It checks each entry of the ring.
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
// checked 64. Then it releases the lock, which others may be waiting for.
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
