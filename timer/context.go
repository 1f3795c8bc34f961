package timer

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/tickless/tickless/timingwheel"
)

// WithTimeout is [context.WithTimeout] with the Scheduler's timers: it returns
// WithDeadline(parent, the Scheduler's time + d).
func (s *Scheduler) WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return s.WithTimeoutCause(parent, d, nil)
}

// WithTimeoutCause is [context.WithTimeoutCause] with the Scheduler's timers.
func (s *Scheduler) WithTimeoutCause(parent context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	now := s.clock.Now()
	return s.withDeadline(parent, now, now.Add(d), cause)
}

// WithDeadline is [context.WithDeadline] with the Scheduler's timers: the context
// that it returns is done when the deadline has passed on the Scheduler's clock,
// when cancel is called, or when parent is done, whichever comes first. Call
// cancel as soon as the context is no longer needed: it releases the timer at
// once.
//
// The context does all that package context promises of one of its own. Contexts
// derived from it directly cost no goroutine each and are cancelled before cancel
// returns. What differs is this: the Done channel of a context whose parent is one
// of package context's closes just after the parent's cancel has returned, though
// Err and a later call of Done tell at once; contexts of package context's that are
// derived from it are done just after too, unless it was asked so; and one that is
// derived from it through context.WithValue costs a goroutine.
//
// If the Scheduler has no room for another timer, or is closed, the context is one
// of package context's, and the timer is counted in Stats as rejected; under a
// clock that was given by [WithClock] it is then done only by cancel or parent. If
// the Scheduler is closed while the context is pending, it no longer expires.
func (s *Scheduler) WithDeadline(parent context.Context, deadline time.Time) (context.Context, context.CancelFunc) {
	return s.WithDeadlineCause(parent, deadline, nil)
}

// WithDeadlineCause is [context.WithDeadlineCause] with the Scheduler's timers.
// See [Scheduler.WithDeadline].
func (s *Scheduler) WithDeadlineCause(parent context.Context, deadline time.Time, cause error) (context.Context, context.CancelFunc) {
	return s.withDeadline(parent, s.clock.Now(), deadline, cause)
}

func (s *Scheduler) withDeadline(parent context.Context, now, deadline time.Time, cause error) (context.Context, context.CancelFunc) {
	if parent == nil {
		panic("timer: cannot create a context from a nil parent")
	}
	if earlier, ok := parent.Deadline(); ok && earlier.Before(deadline) {
		return context.WithCancel(parent)
	}
	c := &deadlineCtx{parent: parent, deadline: deadline, cause: cause}
	c.owner = c
	cancel := func() { c.cancel(context.Canceled, nil) }
	d := deadline.Sub(now)
	if d > 0 {
		// Before the parent is watched, and may cancel the context: so that whoever
		// does that finds the timer.
		c.sh = s.lockShard()
		err := c.sh.restartLocked(max(0, int64(now.Sub(s.epoch))), &c.id, d, nodePayload(&c.node), tagNode)
		c.sh.unlock()
		if err != nil && s.system {
			return context.WithDeadlineCause(parent, deadline, cause)
		}
	}
	c.watchParent()
	if d <= 0 {
		c.expire()
	}
	return c, cancel
}

// deadlineCtx is a context with a deadline.
//
// Its own lock, mu, is taken with no other held, and no other is taken under it.
type deadlineCtx struct {
	node

	// Fixed before the context is handed out.

	parent   context.Context
	deadline time.Time
	above    <-chan struct{} // parent's Done, nil if that is never done
	sh       *shard          // nil if it never had a timer

	// id is guarded by sh.mu.
	id timingwheel.ID

	mu sync.Mutex
	// All below is guarded by mu.

	err error // nil until the context is done
	// cause is what the cause of a timeout is to be; and the cause, once the
	// context is done.
	cause error
	done  chan struct{} // made when first asked for
	// hooks are to be called when the context is done.
	hooks *hook
	// leave stops the watch over the parent; nil if there is none to watch.
	leave func() bool
}

// hook is a function that waits for a context to be done, in a list.
type hook struct {
	f          func()
	prev, next *hook
}

var closedChan = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// contextKey is the key under which a deadlineCtx is its own value.
type contextKey struct{}

// watchParent has the context cancelled when its parent is.
func (c *deadlineCtx) watchParent() {
	done := c.parent.Done()
	if done == nil {
		return // never
	}
	c.above = done
	if c.parent.Err() != nil {
		c.parentDone()
		return
	}
	var leave func() bool
	// One of ours, also inside a context that only adds a value, calls hooks
	// before its cancel returns.
	if p, ok := c.parent.Value(contextKey{}).(*deadlineCtx); ok && p.Done() == done {
		leave = p.AfterFunc(c.parentDone)
	} else {
		leave = context.AfterFunc(c.parent, c.parentDone)
	}
	c.mu.Lock()
	over := c.err != nil
	if !over {
		c.leave = leave
	}
	c.mu.Unlock()
	if over {
		leave() // the deadline passed meanwhile
	}
}

func (c *deadlineCtx) parentDone() { c.cancel(c.parent.Err(), context.Cause(c.parent)) }

// cancel makes the context done, unless it is. A nil cause means err.
func (c *deadlineCtx) cancel(err, cause error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	if cause == nil {
		cause = err
	}
	c.cause = cause
	if c.done == nil {
		c.done = closedChan
	} else {
		close(c.done)
	}
	hooks := c.hooks
	c.hooks = nil
	leave := c.leave
	c.leave = nil
	for h := hooks; h != nil; h = h.next {
		h.prev = h // no longer in the list: see AfterFunc
	}
	c.mu.Unlock()
	c.release()
	if leave != nil {
		leave()
	}
	for h := hooks; h != nil; {
		next := h.next
		h.next = nil // who keeps one hook does not keep the others
		h.f()
		h = next
	}
}

// release stops the timer.
func (c *deadlineCtx) release() {
	if c.sh != nil {
		c.sh.mu.Lock()
		c.sh.stopLocked(c.id)
		c.sh.unlock()
	}
}

// expire makes the context done because its deadline has passed.
func (c *deadlineCtx) expire() {
	c.mu.Lock()
	cause := c.cause // of a timeout, unless the context is done, and cancel does nothing
	c.mu.Unlock()
	c.cancel(context.DeadlineExceeded, cause)
}

func (c *deadlineCtx) expireLocked(sh *shard, _ moment) func() {
	h := &sh.s.hand
	if h.own || h.inline {
		return c.expire
	}
	// An executor that was given may refuse it, and who waits for the context would
	// wait for ever, or take long to come to it.
	go h.watch(c.expire)()
	return nil
}

func (c *deadlineCtx) pendingFunc() func() { return c.expire }
func (c *deadlineCtx) abandon()            {}

func (c *deadlineCtx) Deadline() (time.Time, bool) { return c.deadline, true }

func (c *deadlineCtx) Done() <-chan struct{} {
	c.mu.Lock()
	if c.done == nil {
		c.done = make(chan struct{})
	}
	done := c.done
	c.mu.Unlock()
	c.Err() // closes it if the parent is done
	return done
}

// Err looks at the parent too: one of package context's tells of its end by way
// of a goroutine, which may still be on its way.
func (c *deadlineCtx) Err() error {
	c.mu.Lock()
	err, watched := c.err, c.leave != nil
	c.mu.Unlock()
	if err == nil && watched && c.aboveDone() {
		c.parentDone()
		return c.Err()
	}
	return err
}

// aboveDone reports whether the parent is done. It calls no method of a parent
// that is not ours: Err may be called with a lock held that those take.
func (c *deadlineCtx) aboveDone() bool {
	if p, ok := c.parent.(*deadlineCtx); ok {
		return p.Err() != nil
	}
	select {
	case <-c.above:
		return true
	default:
		return false
	}
}

func (c *deadlineCtx) Value(key any) any {
	if key == (contextKey{}) {
		return c
	}
	if key == causeKey() {
		if v := c.causeHolder(); v != nil {
			return v.Value(key)
		}
	}
	return c.parent.Value(key)
}

// AfterFunc calls f once the context is done, as [context.AfterFunc] does, by
// which package context reaches it: for the contexts derived from this one. If
// the context is done already f is called on a goroutine of its own, and else by
// who cancels it, without a lock held; then f must not block.
func (c *deadlineCtx) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		go f()
		return func() bool { return false }
	}
	h := &hook{f: f, next: c.hooks}
	if h.next != nil {
		h.next.prev = h
	}
	c.hooks = h
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		if h.prev == h {
			return false
		}
		if h.prev != nil {
			h.prev.next = h.next
		} else {
			c.hooks = h.next
		}
		if h.next != nil {
			h.next.prev = h.prev
		}
		h.prev, h.next = h, nil
		return true
	}
}

func (c *deadlineCtx) String() string {
	name := reflect.TypeOf(c.parent).String()
	if s, ok := c.parent.(fmt.Stringer); ok {
		name = s.String()
	}
	left := time.Until(c.deadline)
	if c.sh != nil {
		left = c.deadline.Sub(c.sh.s.clock.Now())
	}
	return name + ".WithDeadline(" + c.deadline.String() + " [" + left.String() + "])"
}

// causeHolder returns a context of package context's with the same cause, nil
// while there is none.
//
// [context.Cause] finds a context's cause by asking it for the nearest context of
// package context's: without this that would be one around ours, whose cause, if
// any, is another.
func (c *deadlineCtx) causeHolder() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		return nil
	}
	holder, cancel := context.WithCancelCause(context.Background())
	cancel(c.cause)
	return holder
}

// causeKey returns the key by which package context asks, as it tells whoever it
// asks.
var causeKey = sync.OnceValue(func() any {
	p := &causeProbe{Context: context.Background()}
	context.Cause(p)
	return p.key
})

type causeProbe struct {
	context.Context
	key any
}

func (p *causeProbe) Err() error { return context.Canceled }

func (p *causeProbe) Value(key any) any {
	p.key = key
	return nil
}
