package timer

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"go.uber.org/atomic"
)

// deadlineCtx is a context with a deadline.
//
// # A context's life
//
//	                 arm                      finish
//	(new) ─▶ idle ─────────▶ waiting ─▶ closing ─────────▶ canceled, exceeded, other
//	           │                                              ▲
//	           └──────────────────────────────────────────────┘
//
// Idle, nobody waits for it: it has no timer, no channel, and its parent does not
// know of it. Whoever asks looks at the clock and at the parent. Waiting, its timer
// is started and its parent tells it of its end. Every arrow is one critical
// section of mu, but for cancelIdle. Closing lies inside finish, between the moment at which Err is
// fixed and the close of the channel: so whoever receives from Done sees an error,
// and whoever sees an error finds Done closed.
//
// # Locks
//
// A context's mu is taken before that of the context that it is under, and before
// those of shards and of ctxParents, never after: the order runs up the tree. No
// code of others runs under any of them.
type deadlineCtx struct {
	// ended is the moment at which the context ended, as far as is known, never if it
	// is not. First, so that it is aligned on 32-bit machines too.
	ended atomic.Int64

	// Fixed before the context is handed out.

	// due is the deadline on the Scheduler's clock, never if the parent's is earlier.
	due    int64
	parent context.Context
	s      *Scheduler

	// deadline is what Deadline returns, nil while that is not known.
	deadline atomic.Pointer[time.Time]

	// more is what few contexts have: it is set once, under mu.
	more atomic.Pointer[ctxMore]

	mu sync.Mutex
	// state changes under mu, except in cancelIdle, and is read without. Above it are the parent's kind,
	// which is fixed, whether there was ever a child of ours, and how often Err had
	// to look at the clock.
	state atomic.Uint32
}

// ctxMore is what a context has once somebody waits for it, or if it has a cause.
type ctxMore struct {
	// done is a chan struct{}, nil until it is asked for. It is set under mu and
	// read without.
	done atomic.UnsafePointer
	// ends is nil for what most contexts have. It is set once, before the context is
	// handed out or under mu, and read without.
	ends atomic.Pointer[ctxEnds]

	// From arm on fixed.

	// above is the Done channel of a parent that is not ours and whose methods
	// never wait, else nil.
	above   <-chan struct{}
	nearest *deadlineCtx // the context of ours that it is under, if any
	group   *ctxGroup    // else its group, if any

	// place is this context's in the list of those that nearest or group tells of its
	// end. Its links are guarded by their lock.
	place ctxHook

	// All below is guarded by mu.

	timer Handle
	alarm interface{ Stop() } // what it has fallen back to in place of timer
	// hooks are to be told when the context is done.
	hooks *ctxHook
}

// ctxEnds is what a context has to say of its end, where that is not simply
// context.Canceled or context.DeadlineExceeded.
type ctxEnds struct {
	timeout error // what the cause of a timeout is to be, if not nil
	// err and cause are set when the context ends, and fixed from then on.
	err, cause error
}

// The states, in the lower part of deadlineCtx.state.
const (
	ctxIdle = iota
	ctxWaiting
	ctxClosing
	// From here on the context is done.
	ctxCanceled
	ctxExceeded
	ctxOther // another error, in ctxEnds

	ctxStateMask = 1<<8 - 1
	ctxKindShift = 8
	ctxKindMask  = 1<<16 - 1 - ctxStateMask
	ctxHadChild  = 1 << 16
	ctxLook      = 1 << 20 // one of them
)

func (c *deadlineCtx) phase() uint32 { return c.state.Load() & ctxStateMask }

func (c *deadlineCtx) kind() ctxKind { return ctxKind(c.state.Load() & ctxKindMask >> ctxKindShift) }

// move puts the context in a state, if it is in one up to last.
func (c *deadlineCtx) move(last, state uint32) bool {
	old := c.state.Load()
	for old&ctxStateMask <= last {
		if c.state.CompareAndSwap(old, old&^ctxStateMask|state) {
			return true
		}
		old = c.state.Load() // it, or what is above it, has changed
	}
	return false
}

// cancelIdle cancels a context that nobody waits for, and that has no child to ask
// when it ended. It is the one change of state without mu.
func (c *deadlineCtx) cancelIdle() bool {
	for old := c.state.Load(); old&(ctxStateMask|ctxHadChild) == ctxIdle; old = c.state.Load() {
		if c.state.CompareAndSwap(old, old|ctxCanceled) {
			return true
		}
	}
	return false
}

// noteChild notes that one of ours is derived from the context. It reports false if
// the context is done.
func (c *deadlineCtx) noteChild() bool {
	old := c.state.Load()
	for old&ctxHadChild == 0 && !c.state.CompareAndSwap(old, old|ctxHadChild) {
		old = c.state.Load()
	}
	return old&ctxStateMask <= ctxWaiting
}

func (c *deadlineCtx) Err() error {
	switch state := c.state.Load(); state & (ctxStateMask | ctxKindMask) {
	case ctxWaiting | uint32(ctxAlone)<<ctxKindShift:
		return nil
	case ctxWaiting | uint32(ctxUnderStd)<<ctxKindShift:
		if c.parent.Err() == nil {
			return nil
		}
	default:
		if state&ctxStateMask == ctxWaiting && !c.aboveOver(c.kind()) {
			return nil
		}
	}
	return c.lookErr()
}

// aboveOver reports whether the parent of a context that waits is done. Package
// context's tell of their end by way of a goroutine, which may still be on its way.
func (c *deadlineCtx) aboveOver(kind ctxKind) bool {
	switch kind {
	case ctxUnderStd:
		return c.parent.Err() != nil
	case ctxUnderOurs:
		return c.more.Load().nearest.Err() != nil
	case ctxUnderOther:
		m := c.more.Load()
		if m.nearest != nil {
			return m.nearest.Err() != nil
		}
		return m.above != nil && isClosed(m.above)
	}
	return false
}

// looksToArm is how often Err looks at the clock before it has the context wait, so
// that a loop that asks Err does not pay for the clock each time.
const looksToArm = 16

// lookErr is Err where that takes more than a look at the state.
func (c *deadlineCtx) lookErr() error {
	if c.phase() == ctxIdle && c.state.Add(ctxLook)/ctxLook >= looksToArm {
		c.arm()
	} else if c.phase() <= ctxWaiting && !c.check(c.s.now()) {
		return nil
	}
	return c.settledErr()
}

// settledErr returns the error, nil if the context is not done.
func (c *deadlineCtx) settledErr() error {
	phase := c.phase()
	if phase == ctxClosing {
		c.mu.Lock() // whoever ends it holds it until Done is closed
		phase = c.phase()
		c.mu.Unlock()
	}
	switch phase {
	case ctxCanceled:
		return context.Canceled
	case ctxExceeded:
		return context.DeadlineExceeded
	case ctxOther:
		return c.more.Load().ends.Load().err
	}
	return nil
}

// check ends the context if its parent is done or its deadline has passed by now. It
// reports whether it is so.
//
// If both are so, which of them came first cannot be told in general. If the
// parent is ours, it can; else it counts as the parent's end, unless that is itself
// a timeout: then a deadline that was not before this one's has passed.
func (c *deadlineCtx) check(now int64) bool {
	switch c.kind() {
	case ctxAlone:
	case ctxUnderStd:
		if c.parent.Err() == nil {
			break // nearly always, and without more ado
		}
		fallthrough
	default:
		if end, ok := c.parentEnd(now); ok {
			c.end(c.judge(end))
			return true
		}
	}
	if now >= c.due {
		c.end(c.timeout())
		return true
	}
	return false
}

// ctxEnd is how a context ended, and when, on whose clock.
type ctxEnd struct {
	err, cause error
	at         int64
	by         *Scheduler
}

// timeout is how the context ends when its deadline passes.
func (c *deadlineCtx) timeout() ctxEnd {
	end := ctxEnd{context.DeadlineExceeded, context.DeadlineExceeded, c.due, c.s}
	if ends := c.ends(); ends != nil && ends.timeout != nil {
		end.cause = ends.timeout
	}
	return end
}

// judge returns how the context ended if its parent ended so. See check.
func (c *deadlineCtx) judge(end ctxEnd) ctxEnd {
	passed := c.due <= end.at && c.s == end.by
	if passed && (c.kind() == ctxUnderOurs || end.err == context.DeadlineExceeded) {
		return c.timeout()
	}
	return end
}

// cancel is the function that goes with the context.
func (c *deadlineCtx) cancel() {
	state := c.state.Load()
	switch state & ctxStateMask {
	case ctxIdle:
		// What has happened before counts, though nobody has looked.
		now := c.s.now()
		if c.check(now) {
			return
		}
		if !c.cancelIdle() {
			c.end(ctxEnd{context.Canceled, context.Canceled, now, c.s})
		}
	case ctxWaiting:
		if c.aboveOver(c.kind()) {
			c.check(c.s.now())
		}
		at := int64(0)
		if state&ctxHadChild != 0 {
			at = c.s.now() // for one that nobody waits for, to know which was first
		}
		c.end(ctxEnd{context.Canceled, context.Canceled, at, c.s})
	}
}

// end makes the context done, unless it is, and tells all who wait for that.
func (c *deadlineCtx) end(end ctxEnd) {
	if hooks, ok := c.finish(end, false); ok {
		tell(hooks, end)
	}
}

// finish makes the context done, unless it is. It returns those who are to be
// told. On the poller it runs nothing that is not ours alone.
func (c *deadlineCtx) finish(end ctxEnd, onPoller bool) (hooks *ctxHook, ok bool) {
	c.mu.Lock()
	waiting := c.phase() == ctxWaiting
	if !c.move(ctxWaiting, ctxClosing) {
		c.mu.Unlock()
		return nil, false
	}
	state := uint32(ctxOther)
	switch end.err {
	case context.Canceled:
		state = ctxCanceled
	case context.DeadlineExceeded:
		state = ctxExceeded
	}
	if state == ctxOther || end.cause != end.err && end.cause != nil {
		c.keepLocked(end)
	}
	var timer Handle
	var alarm interface{ Stop() }
	m := c.more.Load()
	if waiting {
		if done := m.doneChan(); done != nil {
			close(done)
		} else {
			m.setDone(closedChan)
		}
		hooks, m.hooks = m.hooks, nil
		timer, alarm = m.timer, m.alarm
		m.timer, m.alarm = Handle{}, nil
	}
	c.ended.Store(end.at)
	c.move(ctxClosing, state)
	c.mu.Unlock()
	if waiting {
		if alarm != nil {
			alarm.Stop()
		}
		timer.Stop()
		c.leave(m, onPoller)
	}
	return hooks, true
}

// keepLocked notes how the context ended.
func (c *deadlineCtx) keepLocked(end ctxEnd) {
	if end.cause == nil {
		end.cause = end.err
	}
	m := c.more.Load()
	if m == nil {
		m = new(ctxMore)
		defer c.more.Store(m)
	}
	ends := m.ends.Load()
	if ends == nil {
		ends = new(ctxEnds)
		defer m.ends.Store(ends)
	}
	ends.err, ends.cause = end.err, end.cause
}

// ends returns what the context has to say of its end, nil if that is nothing.
func (c *deadlineCtx) ends() *ctxEnds {
	if m := c.more.Load(); m != nil {
		return m.ends.Load()
	}
	return nil
}

func (c *deadlineCtx) String() string {
	name := reflect.TypeOf(c.parent).String()
	if s, ok := c.parent.(fmt.Stringer); ok {
		name = s.String()
	}
	at, _ := c.Deadline()
	left := at.Sub(c.s.clock.Now())
	return name + ".WithDeadline(" + at.String() + " [" + left.String() + "])"
}
