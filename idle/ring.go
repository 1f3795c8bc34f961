package idle

import (
	"math"
	"math/bits"
	"time"
	"unsafe"

	"github.com/tickless/tickless/timer"
)

// links connect a live entry to its neighbours in a ring. They must be the first field,
// because a *links is converted to an *entry or an *entryRing.
type links struct{ prev, next *links }

// An entryRing is a list of entries that are checked together, when the ring's timer
// fires. The stripe's lock guards the ring.
type entryRing struct {
	links // to the first and the last entry, or to the ring itself if it is empty
	ringKey
	stripe *stripe
	timer  timer.Handle
}

// ringKey identifies an entryRing of a stripe.
type ringKey struct {
	checkAt   Moment // when the entries are checked
	isRecheck bool   // this is the entries' second check: see stripe.checkEntryLocked
}

// scheduleCheckLocked puts e into the ring that is checked d from now, or a little later:
// see checkTime. After Close, it returns ErrClosed.
func (st *stripe) scheduleCheckLocked(e *entry, now Moment, d time.Duration, isRecheck bool) error {
	c := st.core
	if c.closed.Load() {
		return ErrClosed
	}
	key := ringKey{c.checkTime(now, d, c.slackOf(e.timeout.Load())), isRecheck}
	r := st.rings[key]
	if r == nil {
		r = &entryRing{ringKey: key, stripe: st}
		r.prev, r.next = &r.links, &r.links
		var err error
		if r.timer, err = c.scheduler.Start(time.Duration(key.checkAt-now), r.checkAll); err != nil {
			return ErrClosed // closed meanwhile
		}
		st.rings[key] = r
	}
	e.prev, e.next = r.prev, &r.links
	e.prev.next, e.next.prev = &e.links, &e.links
	return nil
}

// checkTime returns when to check an entry that will be idle d from now. It rounds up, by
// less than the larger of tick and slack, so that many entries are checked together.
func (c *core) checkTime(now Moment, d, slack time.Duration) Moment {
	if d <= 0 {
		return now
	}
	roundingStep := Moment(c.tick)
	if slack > c.tick {
		roundingStep = 1 << (bits.Len64(uint64(slack)) - 1)
	}
	at := now + Moment(d)
	if at < now || at > math.MaxInt64-roundingStep {
		return math.MaxInt64 // the sum overflows
	}
	return (at + roundingStep - 1) / roundingStep * roundingStep
}

// removeFromRingLocked takes a live entry out of its ring. If the ring is then empty, it
// stops the ring's timer and deletes the ring.
func (st *stripe) removeFromRingLocked(e *entry) {
	prev, next := e.prev, e.next
	prev.next, next.prev = next, prev
	e.prev, e.next = nil, nil
	if prev == next {
		r := (*entryRing)(unsafe.Pointer(prev))
		r.timer.Stop()
		delete(st.rings, r.ringKey)
	}
}

// checkAll is the function of the ring's timer. It checks each entry of the ring.
func (r *entryRing) checkAll() {
	r.notePause()
	for more := true; more; {
		var e *entry
		var last Moment
		if e, last, more = r.checkBatch(); e != nil {
			r.stripe.core.submitCallback(e, last)
		}
	}
}

// checkBatch checks at most 64 entries, and stops when it has evicted one, which it
// returns. more is true if entries may remain.
func (r *entryRing) checkBatch() (e *entry, last Moment, more bool) {
	r.stripe.mu.Lock()
	defer r.stripe.mu.Unlock()
	for range 64 { // so that the lock is held only for a short time
		if r.next == &r.links {
			return nil, 0, false
		}
		e := (*entry)(unsafe.Pointer(r.next))
		r.stripe.removeFromRingLocked(e)
		if last, idle := r.stripe.checkEntryLocked(e, r.isRecheck); idle {
			return e, last, true
		}
	}
	return nil, 0, true
}
