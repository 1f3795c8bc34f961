package soak

import (
	"math/rand/v2"
	"time"

	"github.com/tickless/tickless/deadline"
)

// A moment is a deadline.Deadline. While it is set, a goroutine waits for it.
type moment struct {
	d deadline.Deadline
	// n is nil before the deadline is set, and after it is cleared.
	n    *note
	done <-chan struct{}
	// gone is closed when the deadline is cleared.
	gone chan struct{}
}

// deadlines returns a step that sets deadlines later, earlier and into the past, clears
// them, and sets them again.
func deadlines() func(*ledger, *rand.Rand, time.Duration) {
	var all [50]*moment
	return func(l *ledger, rng *rand.Rand, longest time.Duration) {
		i := rng.IntN(len(all))
		if all[i] == nil {
			all[i] = new(moment)
		}
		x := all[i]
		d := delay(rng, longest)
		switch {
		case x.n == nil || isClosed(x.done):
			x.start(l, d)
		case rng.IntN(4) == 0:
			x.clear()
		case rng.IntN(4) == 0:
			x.set(-d)
		default:
			x.set(d)
		}
	}
}

// start sets a deadline that is not set or has passed, and starts a goroutine that
// waits for it.
func (x *moment) start(l *ledger, d time.Duration) {
	n, gone := l.enter(d), make(chan struct{})
	x.d.Set(time.Now().Add(d))
	done := x.d.Done()
	x.n, x.done, x.gone = n, done, gone
	go func() {
		select {
		case <-done:
			if !isClosed(gone) { // otherwise the channel may belong to the next deadline
				n.fire()
			}
		case <-gone:
		}
	}()
}

// set moves the deadline to d from now. If Done is closed meanwhile, the old or the new
// deadline may have closed it. The note x.n then keeps the earlier of the two.
func (x *moment) set(d time.Duration) {
	x.n.move(d, func() bool {
		earlier := now()+d < x.n.due
		x.d.Set(time.Now().Add(d))
		return x.n.settled == "" && (earlier || !isClosed(x.done))
	})
}

// clear clears the deadline. If it passes nevertheless, the ledger reports that the next
// deadline is early.
func (x *moment) clear() {
	cleared := x.n.stop(func() bool {
		x.d.Set(time.Time{})
		return !isClosed(x.done)
	})
	if cleared {
		close(x.gone)
		x.n = nil
	}
}
