package timer

import (
	"context"
	"time"
)

// WithTimeout is [context.WithTimeout] with the Scheduler's timers: it returns
// WithDeadline(parent, the Scheduler's time + d).
func (s *Scheduler) WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return s.WithTimeoutCause(parent, d, nil)
}

// WithTimeoutCause is [context.WithTimeoutCause] with the Scheduler's timers.
func (s *Scheduler) WithTimeoutCause(parent context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	at := s.clock.Now()
	now := s.since(at)
	return s.withDeadline(parent, now, deadlineAfter(now, d), at.Add(d), cause)
}

// WithDeadline is [context.WithDeadline] with the Scheduler's timers: the context
// that it returns is done when the deadline has passed on the Scheduler's clock,
// when cancel is called, or when parent is done, whichever comes first. Call
// cancel as soon as the context is no longer needed: it releases the timer at
// once.
//
// The context does all that package context promises of one of its own. Contexts
// derived from it directly cost no goroutine each and are cancelled before cancel
// returns. What differs is this:
//
//   - The Done channel of a context whose parent is one of package context's closes
//     shortly after the parent's cancel has returned. Err reports the end at once,
//     and so does a later call of Done.
//   - So do contexts of package context's that are derived from it.
//   - One that is derived from it through context.WithValue costs a goroutine.
//
// All contexts under the same parent that wait for something share one
// registration with it, and one goroutine when it ends.
//
// If the Scheduler has no room for another timer, or is closed, before or while
// the context is pending, the context goes on with a timer of package time's, or
// of the clock that was given by [WithClock], and is counted in Stats as FellBack.
func (s *Scheduler) WithDeadline(parent context.Context, deadline time.Time) (context.Context, context.CancelFunc) {
	return s.WithDeadlineCause(parent, deadline, nil)
}

// WithDeadlineCause is [context.WithDeadlineCause] with the Scheduler's timers.
// See [Scheduler.WithDeadline].
func (s *Scheduler) WithDeadlineCause(parent context.Context, deadline time.Time, cause error) (context.Context, context.CancelFunc) {
	at := s.clock.Now()
	now := s.since(at)
	return s.withDeadline(parent, now, deadlineAfter(now, deadline.Sub(at)), deadline, cause)
}

// since turns a reading of the clock into a moment of now's.
func (s *Scheduler) since(t time.Time) int64 { return max(0, int64(t.Sub(s.epoch))) }

// withDeadline makes a context that ends at due, which its Deadline calls
// deadline.
func (s *Scheduler) withDeadline(parent context.Context, now, due int64, deadline time.Time, cause error) (context.Context, context.CancelFunc) {
	if parent == nil {
		panic("timer: cannot create a context from a nil parent")
	}
	c := &deadlineCtx{parent: parent, s: s, deadline: deadline}
	if earlier, ok := parent.Deadline(); ok && earlier.Before(deadline) {
		c.deadline, due = earlier, never // the parent's end is its own
	} else if cause != nil {
		c.more.Store(&ctxMore{ends: &ctxEnds{timeout: cause}})
	}
	c.due.Store(due)
	c.due.Store(due)
	up, kind := stdKinds().nearest(parent)
	c.state.Store(uint32(kind) << ctxKindShift)
	switch {
	case kind == ctxUnderOurs:
		up.(*deadlineCtx).noteChild()
	case kind == ctxUnderOther:
		// Its methods may take locks that whoever asks later holds: so it is asked
		// now, as package context does.
		c.watchOther(now)
		return c, c.cancel
	}
	if due <= now {
		c.look(now)
	}
	return c, c.cancel
}
