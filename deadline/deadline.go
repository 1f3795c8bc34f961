package deadline

import (
	"os"
	"sync"
	"time"

	"github.com/tickless/tickless/internal/bubble"
	"github.com/tickless/tickless/timer"
)

// A Deadline is a moment that can be changed and waited for. It helps to write methods
// such as the SetReadDeadline of [net.Conn]: SetReadDeadline calls Set, and Read
// selects on Done:
//
//	select {
//	case b := <-c.in:
//		return copy(p, b), nil
//	case <-c.readDeadline.Done():
//		return 0, os.ErrDeadlineExceeded
//	}
//
// The zero Deadline is ready to use, and has no deadline set. Do not copy a Deadline
// after its first use.
//
// Set starts no timer before the first call of Done. A pending timer keeps the Deadline
// in memory until it fires, even after Set has changed the deadline. Inside a
// testing/synctest bubble, use only a Deadline that was first used there.
type Deadline struct {
	mu sync.Mutex
	// mu guards the fields below.

	deadline   time.Time     // zero: not set
	done       chan struct{} // nil until Done is called
	doneClosed bool          // done is closed
	timer      *timer.Timer  // nil until needed
	firesAt    time.Time     // when the timer fires; zero: the timer is not pending
}

// Set sets the deadline to t. The zero time means no deadline. Done's channel is closed
// at t, or up to one tick of the default Scheduler later. If the channel is already
// closed, Done returns a new one after Set.
func (d *Deadline) Set(t time.Time) {
	if !t.IsZero() && !bubble.HasMonotonic(t) {
		now := time.Now()
		t = now.Add(t.Sub(now)) // does not move when the wall clock is set
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.deadline = t
	if d.doneClosed {
		d.done, d.doneClosed = nil, false
	}
	d.setTimerLocked()
}

// Done returns a channel that is closed when the deadline has passed. Until then all
// calls return the same channel, even after Set.
func (d *Deadline) Done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done == nil {
		d.done = make(chan struct{})
	}
	d.setTimerLocked()
	return d.done
}

// Err returns [os.ErrDeadlineExceeded] if the deadline has passed, and otherwise nil.
// If Set has been called after Done's channel was closed, Err may return nil.
func (d *Deadline) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.deadline.IsZero() || time.Now().Before(d.deadline) {
		return nil
	}
	d.closeDoneLocked()
	return os.ErrDeadlineExceeded
}

func (d *Deadline) closeDoneLocked() {
	if d.done != nil && !d.doneClosed {
		d.doneClosed = true
		close(d.done)
	}
}

// setTimerLocked sets the timer to fire at the deadline, if Done has been called. It
// keeps a timer that fires earlier: onFire then sets the timer again.
func (d *Deadline) setTimerLocked() {
	if d.done == nil || d.doneClosed || d.deadline.IsZero() || !d.firesAt.IsZero() && !d.deadline.Before(d.firesAt) {
		return
	}
	delay := time.Until(d.deadline)
	switch {
	case delay <= 0:
		d.closeDoneLocked() // a pending timer fires without effect
		return
	case d.timer == nil:
		d.timer = timer.AfterFunc(delay, d.onFire)
	default:
		d.timer.Reset(delay)
	}
	d.firesAt = d.deadline
}

// onFire runs when the timer fires.
func (d *Deadline) onFire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.firesAt = time.Time{} // even if Set has just reset the timer: it is set again below
	d.setTimerLocked()
}
