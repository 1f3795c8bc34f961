package deadline

import (
	"os"
	"sync"
	"time"

	"github.com/tickless/tickless/internal/bubble"
	"github.com/tickless/tickless/timer"
)

// A Deadline is a moment that can be set repeatedly and waited for. A type with a
// SetReadDeadline method, such as a [net.Conn], needs one: SetReadDeadline calls Set,
// and Read selects on Done:
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
// Set allocates nothing and starts no timer before the first call of Done. Timers run
// on the default Scheduler. A pending timer keeps its Deadline in memory until
// it fires: Set does not stop it.
type Deadline struct {
	mu sync.Mutex
	// mu guards the fields below.

	due     time.Time     // zero: not set
	done    chan struct{} // nil until Done is called
	closed  bool          // done is closed
	timer   *timer.Timer  // nil until needed
	firesAt time.Time     // when the timer fires; zero: the timer is not pending
}

// Set sets the deadline to t. The zero time means no deadline. When t has passed, Err
// reports it at once, and Done's channel is closed within a tick of the default
// Scheduler.
//
// Set may be called again after a deadline has passed. Then Done returns a new channel,
// and Err returns nil until t.
func (d *Deadline) Set(t time.Time) {
	if !t.IsZero() && !bubble.Monotonic(t) {
		now := time.Now()
		t = now.Add(t.Sub(now)) // does not move when the wall clock is set
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.due = t
	if d.closed {
		d.done, d.closed = nil, false
	}
	d.armLocked()
}

// Done returns a channel that is closed when the deadline has passed. Until then all
// calls return the same channel, even if Set changes the deadline.
func (d *Deadline) Done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done == nil {
		d.done = make(chan struct{})
	}
	d.armLocked()
	return d.done
}

// Err returns [os.ErrDeadlineExceeded] if the deadline has passed, and otherwise nil. A
// goroutine that has received from Done need not call Err: if Set has been called
// since, Err may return nil.
func (d *Deadline) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.due.IsZero() || time.Now().Before(d.due) {
		return nil
	}
	d.closeDoneLocked()
	return os.ErrDeadlineExceeded
}

func (d *Deadline) closeDoneLocked() {
	if d.done != nil && !d.closed {
		d.closed = true
		close(d.done)
	}
}

// armLocked sets the timer to fire at due, if Done has been called. It does not change a
// pending timer that fires earlier: when that timer fires, onFire calls armLocked again.
func (d *Deadline) armLocked() {
	if d.done == nil || d.closed || d.due.IsZero() || !d.firesAt.IsZero() && !d.due.Before(d.firesAt) {
		return
	}
	delay := time.Until(d.due)
	switch {
	case delay <= 0:
		d.closeDoneLocked() // a pending timer fires without effect
		return
	case d.timer == nil:
		d.timer = timer.AfterFunc(delay, d.onFire)
	default:
		d.timer.Reset(delay)
	}
	d.firesAt = d.due
}

// onFire runs when the timer fires.
func (d *Deadline) onFire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.firesAt = time.Time{} // even if Set has just reset the timer: armLocked resets it again
	d.armLocked()
}
