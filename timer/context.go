package timer

import (
	"context"
	"time"

	"go.uber.org/atomic"
)

// WithTimeout is [context.WithTimeout] with the Scheduler's timers: it returns
// WithDeadline(parent, the Scheduler's time + d).
func (s *Scheduler) WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return s.WithTimeoutCause(parent, d, nil)
}

// WithTimeoutCause is [context.WithTimeoutCause] with the Scheduler's timers.
func (s *Scheduler) WithTimeoutCause(parent context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	at, now := s.read()
	return s.withDeadline(parent, now, deadlineAfter(now, d), at.Add(d), cause)
}

// WithDeadline is [context.WithDeadline] with the Scheduler's timers: the context
// that it returns is done when the deadline has passed on the Scheduler's clock,
// when cancel is called, or when parent is done, whichever comes first. Call
// cancel as soon as the context is no longer needed: it releases the timer at
// once.
//
// The context costs a timer, a channel and a registration with its parent only once
// somebody waits for it: once Done is called, [context.AfterFunc] is, or a context
// that can be cancelled is derived from it. Until then Err and cancel look at the
// clock and at the parent, and a context that is dropped without cancel is garbage.
// After some calls of Err it waits all the same, so that a loop does not read the
// clock each time. Under a parent that is neither of this package nor of package
// context, it waits from the start: its parent's methods may take locks, and are
// never called by who asks.
//
// The context does all that package context promises of one of its own. Contexts
// derived from it directly cost no goroutine each and are cancelled before cancel
// returns. What differs is this:
//
//   - The Done channel of a context whose parent is one of package context's closes
//     shortly after the parent's cancel has returned. Err reports the end at once,
//     and so does a later call of Done.
//   - Contexts of package context's that are derived from it follow shortly after,
//     unless Err or Done of this one was called.
//   - One that is derived from it through context.WithValue costs a goroutine.
//   - If a parent of package context's ended and the deadline passed before anybody
//     looked, which came first is not known. The parent's end counts, unless that was
//     a timeout too.
//
// All contexts under the same parent that wait share one registration with it, and
// one goroutine when it ends. It may stay with the parent after the last of them.
//
// If the Scheduler has no room for another timer, or is closed, before or while
// the context is pending, the context goes on with a timer of package time's, or
// with an alarm of the clock that was given by [WithClock], and is counted in Stats
// as FellBack. Close does not hand it back.
func (s *Scheduler) WithDeadline(parent context.Context, deadline time.Time) (context.Context, context.CancelFunc) {
	return s.WithDeadlineCause(parent, deadline, nil)
}

// WithDeadlineCause is [context.WithDeadlineCause] with the Scheduler's timers.
// See [Scheduler.WithDeadline].
func (s *Scheduler) WithDeadlineCause(parent context.Context, deadline time.Time, cause error) (context.Context, context.CancelFunc) {
	at, now := s.read()
	return s.withDeadline(parent, now, deadlineAfter(now, deadline.Sub(at)), deadline, cause)
}

// read reads the clock: the time, and the moment that now would have returned.
func (s *Scheduler) read() (at time.Time, now int64) {
	if !s.system {
		at = s.clock.Now()
		return at, max(0, int64(at.Sub(s.epoch)))
	}
	at = time.Now()
	if now = int64(at.Sub(s.epoch)); now < 0 {
		s.mustBeAtHome()
	}
	return at, now
}

// withDeadline makes a context that ends at due, which its Deadline calls
// deadline.
func (s *Scheduler) withDeadline(parent context.Context, now, due int64, deadline time.Time, cause error) (context.Context, context.CancelFunc) {
	if parent == nil {
		panic("timer: cannot create a context from a nil parent")
	}
	if earlier, ok := parent.Deadline(); ok && earlier.Before(deadline) {
		deadline, due, cause = earlier, never, nil // the parent's end is its own
	}
	up, kind := stdKinds().nearest(parent)
	c := &deadlineCtx{
		due:      *atomic.NewInt64(due),
		parent:   parent,
		s:        s,
		deadline: deadline,
		state:    *atomic.NewUint32(uint32(kind) << ctxKindShift),
	}
	if cause != nil {
		m := new(ctxMore)
		m.ends.Store(&ctxEnds{timeout: cause})
		c.more.Store(m)
	}
	if kind == ctxUnderOther {
		// Its methods may take locks that whoever asks later holds: so it is asked
		// now, as package context does.
		c.watchOther(now)
		return c, c.cancel
	}
	lives := kind != ctxUnderOurs || up.(*deadlineCtx).noteChild()
	if due <= now {
		c.endAtOnce(now)
	} else if !lives {
		c.look(now)
	}
	return c, c.cancel
}

// endAtOnce ends a context whose deadline had passed when it was made. If its parent
// was done by then, that came first.
func (c *deadlineCtx) endAtOnce(now int64) {
	end, ok := c.parentEnd(now)
	if !ok {
		end = c.timeout()
	}
	c.end(end)
}
