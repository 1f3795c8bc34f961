package deadline

import (
	"os"
	"sync"
	"time"

	"github.com/tickless/tickless/internal/bubble"
	"github.com/tickless/tickless/timer"
)

// A Deadline is a moment that can be set repeatedly and waited for. Types with a
// SetDeadline method, such as a [net.Conn], need one. Embed it, let SetReadDeadline call
// Set, and let blocking methods select on Done:
//
//	select {
//	case b := <-c.in:
//		return copy(p, b), nil
//	case <-c.readDeadline.Done():
//		return 0, os.ErrDeadlineExceeded
//	}
//
// The zero Deadline is not set and ready to use. Until Done is called, Set allocates
// nothing and starts no timer. If the deadline is set later, a pending timer stays and is
// reset when it fires. The timers belong to the default Scheduler. A Deadline must not be
// copied after its first use. After a call of Done, the Deadline is garbage only after
// its timer has fired.
type Deadline struct {
	mu sync.Mutex
	// All below is guarded by mu.

	due     time.Time     // zero: not set
	done    chan struct{} // nil until Done is called
	closed  bool          // done is closed
	timer   *timer.Timer  // nil until needed
	firesAt time.Time     // when the timer fires; zero: the timer is not pending
}

// Set sets the deadline to t. The zero time means no deadline. If t has passed, Err
// reports it at once, and Done's channel is closed within a tick of the default
// Scheduler. If an earlier deadline has passed, Done makes a new channel, and Err returns
// nil until t.
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

// Done returns a channel that is closed when the deadline has passed. The channel stays
// the same while the deadline is changed, until it has passed.
func (d *Deadline) Done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done == nil {
		d.done = make(chan struct{})
	}
	d.armLocked()
	return d.done
}

// Err returns [os.ErrDeadlineExceeded] if the present deadline has passed, and otherwise
// nil. It may return nil after Done's channel was closed, because the deadline may have
// been set to another moment since. A goroutine that has received from Done need not call
// Err.
func (d *Deadline) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.due.IsZero() || time.Now().Before(d.due) {
		return nil
	}
	d.passLocked()
	return os.ErrDeadlineExceeded
}

func (d *Deadline) passLocked() {
	if d.done != nil && !d.closed {
		d.closed = true
		close(d.done)
	}
}

// armLocked makes the timer fire at due if Done has been called. It leaves alone a timer
// that fires earlier: fired then resets it.
func (d *Deadline) armLocked() {
	if d.done == nil || d.closed || d.due.IsZero() || !d.firesAt.IsZero() && !d.due.Before(d.firesAt) {
		return
	}
	wait := time.Until(d.due)
	switch {
	case wait <= 0:
		d.passLocked() // a pending timer fires without effect
		return
	case d.timer == nil:
		d.timer = timer.AfterFunc(wait, d.fired)
	default:
		d.timer.Reset(wait)
	}
	d.firesAt = d.due
}

// fired is the timer's function.
func (d *Deadline) fired() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.firesAt = time.Time{} // if armLocked has just reset the timer, the next line resets it again
	d.armLocked()
}
