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
	now := s.now()
	due := deadlineAfter(now, d)
	if due == never {
		return s.WithDeadlineCause(parent, s.clock.Now().Add(d), cause)
	}
	c := &deadlineCtx{due: due}
	return c.init(s, parent, now, cause)
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
// After a few calls of Err the context starts to wait anyway, so that a loop does not
// read the clock each time. Under a parent that is neither of this package nor of
// package context it waits from the start: such a parent's methods may take locks, so
// Err never calls them.
//
// The context keeps all that package context promises of its own. Contexts derived
// from it directly cost no goroutine and are cancelled before cancel returns. These
// are the differences:
//
//   - If the parent is one of package context, the Done channel closes shortly after
//     the parent's cancel has returned. Err reports the end at once, and so does a
//     later call of Done. Contexts of package context that are derived from it then
//     follow shortly afterwards too, unless Err or Done of this one was called.
//   - A context that is derived from it through context.WithValue costs a goroutine.
//   - If a parent of package context ended and the deadline passed before anybody
//     looked, it is not known which came first. The parent's end counts, unless that
//     was a timeout too. Contexts below this one follow the same rule.
//   - The wall clock reading in a WithTimeout context's Deadline is taken when
//     Deadline is first called.
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
	c := &struct {
		deadlineCtx
		at time.Time
	}{at: deadline}
	c.due = deadlineAfter(now, deadline.Sub(at))
	c.deadline.Store(&c.at)
	return c.init(s, parent, now, cause)
}

// read reads the clock: the time, and the moment that now would have returned.
func (s *Scheduler) read() (at time.Time, now int64) {
	if !s.real {
		s.enter()
		at = s.clock.Now()
		return at, max(0, int64(at.Sub(s.epoch)))
	}
	at = time.Now()
	if now = int64(at.Sub(s.epoch)); now < 0 {
		s.mustBeAtHome()
	}
	return at, now
}

// init makes of c, whose due is set, and whose deadline if that is known, a context
// below parent. It is now.
func (c *deadlineCtx) init(s *Scheduler, parent context.Context, now int64, cause error) (context.Context, context.CancelFunc) {
	if parent == nil {
		panic("timer: cannot create a context from a nil parent")
	}
	nearest, kind := stdKinds().nearest(parent)
	if ours, _ := nearest.(*deadlineCtx); ours != nil && ours.s == s && ours.due != never {
		if ours.due < c.due {
			c.inherit(&cause)
		}
	} else if earlier, ok := parent.Deadline(); ok && c.isAfter(s, earlier) {
		c.inherit(&cause)
		if kind == ctxUnderOther {
			c.keepDeadline(earlier)
		}
	}
	due := c.due
	c.parent, c.s = parent, s
	c.ended = *atomic.NewInt64(never)
	c.state = *atomic.NewUint32(uint32(kind) << ctxKindShift)
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
	lives := kind != ctxUnderOurs || nearest.(*deadlineCtx).noteChild()
	if due <= now {
		c.endAtOnce(now)
	} else if !lives {
		c.check(now)
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

// inherit has a context that was just made end with its parent, whose deadline is
// earlier.
func (c *deadlineCtx) inherit(cause *error) {
	c.due, *cause = never, nil
	c.deadline.Store(nil)
}

// isAfter reports whether the context's deadline is after another.
func (c *deadlineCtx) isAfter(s *Scheduler, earlier time.Time) bool {
	if at := c.deadline.Load(); at != nil {
		return earlier.Before(*at)
	}
	return s.momentOf(earlier) < c.due
}

func (c *deadlineCtx) keepDeadline(at time.Time) { c.deadline.CompareAndSwap(nil, &at) }

// Deadline is by the wall clock of the moment at which it is first asked for: few
// ask, and a reading of the clock is much of what a context costs.
func (c *deadlineCtx) Deadline() (time.Time, bool) {
	if at := c.deadline.Load(); at != nil {
		return *at, true
	}
	if c.due == never {
		return c.parent.Deadline()
	}
	at, now := c.s.read()
	c.keepDeadline(at.Add(time.Duration(c.due - now)))
	return *c.deadline.Load(), true
}
