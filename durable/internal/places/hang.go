package places

import (
	"time"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timer"
)

// A Place is what an attempt occupies from its start until its handler returns. Its fields are
// guarded by Pool.mu, except the first two.
type Place struct {
	pool    *Pool
	handler int // its index, or -1

	isSuspect     bool // the attempt is one of suspects.reserved
	isLastSuspect bool
	returned      bool // the handler has returned
	hangs         bool
	givenAgain    bool
	timers        [2]timer.Handle // for a handler that hangs
}

// NewPlace returns a place for an attempt of a handler, or of none if it is -1. The attempt
// occupies it only after [Pool.Settle].
func (p *Pool) NewPlace(handler int) Place { return Place{pool: p, handler: handler} }

// Release frees the place: the handler has returned. The caller must offer a place to the
// Claimer, after it has released its locks.
func (x *Place) Release() *Claimer {
	p, now := x.pool, x.pool.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	x.endHangLocked()
	if x.handler >= 0 {
		h := &p.handlers[x.handler]
		p.addTakenLocked(h, -1)
		if h.taken == 0 {
			for _, c := range p.queue {
				c.waits.idle = c.waits.idle || c.waits.ordinary
			}
		}
	}
	x.endSuspectLocked(true)
	return p.nextLocked(now)
}

// hangGrace is how long a handler may take to return after its timeout before it hangs.
const hangGrace = time.Second

// Watch is called when the context of the handler has ended, whatever ended it. A handler that
// does not return within a second after its timeout hangs: it counts in [Pool.InUse], and
// report is called. After another timeout its place is given again, so that handlers that hang
// do not stop the Worker. Each place is given again at most once. Limits of the handler still
// count it.
func (x *Place) Watch(untilTimeout, timeout time.Duration, report func()) {
	untilTimeout, timeout = min(max(0, untilTimeout), store.MaxDelay/2), min(timeout, store.MaxDelay/2)
	p := x.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if x.returned {
		return
	}
	x.timers[0], _ = p.timers.Start(untilTimeout+hangGrace, func() {
		if x.markHanging() {
			report()
		}
	})
	x.timers[1], _ = p.timers.Start(untilTimeout+timeout, x.giveAgain)
}

func (x *Place) markHanging() bool {
	p := x.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if x.returned {
		return false
	}
	x.hangs = true
	p.hanging++
	return true
}

func (x *Place) giveAgain() {
	p, now := x.pool, x.pool.now()
	p.mu.Lock()
	defer p.unlockAndOffer(now)
	if x.returned || p.ended || p.given >= p.total-p.given {
		return
	}
	x.givenAgain = true
	p.given++
	p.total++
	p.addFreeLocked(1)
}

// endHangLocked frees the place, unless it was given again.
func (x *Place) endHangLocked() {
	p := x.pool
	x.returned = true
	for _, t := range x.timers {
		t.Stop()
	}
	if x.hangs {
		p.hanging--
	}
	if x.givenAgain {
		p.given--
		p.total--
		p.addFreeLocked(0)
	} else {
		p.addFreeLocked(1)
	}
}
