package places

import (
	"time"

	"github.com/tickless/tickless/durable/store"
)

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
