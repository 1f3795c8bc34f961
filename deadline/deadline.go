package deadline

import (
	"os"
	"sync"
	"time"

	"github.com/tickless/tickless/internal/bubble"
	"github.com/tickless/tickless/timer"
)

// A Deadline is a moment that can be set again and again, and waited for. It is what
// a type with a SetDeadline method needs, such as a [net.Conn]. Embed it, let
// SetReadDeadline call Set, and let whatever blocks select on Done:
//
//	select {
//	case b := <-c.in:
//		return copy(p, b), nil
//	case <-c.readDeadline.Done():
//		return 0, os.ErrDeadlineExceeded
//	}
//
// The zero Deadline is ready to use, and is not set. While nobody waits, setting it
// allocates nothing and starts no timer; Done does. When the deadline is set later, a
// pending timer stays where it is and moves when it fires. The timers are those of the
// default Scheduler. A Deadline must not be copied after its first use. Once somebody has
// waited for it, it is garbage only after its timer has fired.
type Deadline struct {
	mu sync.Mutex
	// All below is guarded by mu.

	due   time.Time     // zero: none
	done  chan struct{} // nil while nobody waits
	over  bool          // done is closed
	timer *timer.Timer  // nil until somebody waits
	fires time.Time     // the moment for which the timer is pending; zero: it is not
}

// Set makes t the deadline, in place of the one before. The zero time means none. If t
// has passed, Err reports it, and Done's channel is closed within a tick of the default
// Scheduler. If an earlier deadline has passed, Done makes a new channel, and Err returns
// nil until t.
func (d *Deadline) Set(t time.Time) {
	if !t.IsZero() && !bubble.Monotonic(t) {
		now := time.Now()
		t = now.Add(t.Sub(now)) // stays when the wall clock is set
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.due = t
	if d.over {
		d.done, d.over = nil, false
	}
	d.armLocked()
}

// Done returns a channel that is closed when the deadline has passed. The channel
// stays the same while the deadline is set to other moments, until it has passed.
func (d *Deadline) Done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done == nil {
		d.done = make(chan struct{})
	}
	d.armLocked()
	return d.done
}

// Err returns [os.ErrDeadlineExceeded] if the deadline that is set now has passed, and
// else nil. So it may return nil after Done's channel was closed: the deadline may have
// been set to another moment since. After Done's channel is closed there is no need to ask.
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
	if d.done != nil && !d.over {
		d.over = true
		close(d.done)
	}
}

// armLocked makes the timer fire at due if somebody waits. A timer that fires earlier is
// left alone: fired then sets it again.
func (d *Deadline) armLocked() {
	if d.done == nil || d.over || d.due.IsZero() || !d.fires.IsZero() && !d.due.Before(d.fires) {
		return
	}
	wait := time.Until(d.due)
	switch {
	case wait <= 0:
		d.passLocked() // the timer, if it is pending, finds nothing to do
		return
	case d.timer == nil:
		d.timer = timer.AfterFunc(wait, d.fired)
	default:
		d.timer.Reset(wait)
	}
	d.fires = d.due
}

// fired is the timer's function.
func (d *Deadline) fired() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fires = time.Time{} // if armLocked has reset the timer meanwhile, it resets it again
	d.armLocked()
}
