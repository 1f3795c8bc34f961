package deadline

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/tickless/tickless/internal/bubble"
)

// WithTimeout is [context.WithTimeout] without a timer until somebody waits.
func WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return WithTimeoutCause(parent, d, nil)
}

// WithTimeoutCause is [context.WithTimeoutCause] without a timer until somebody waits.
func WithTimeoutCause(parent context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	elapsed := time.Since(start)
	if elapsed < 0 || d <= 0 || !isStandard(parent) {
		return context.WithTimeoutCause(parent, d, cause)
	}
	// The wall clock is read when Deadline is first called: few call it.
	c := &lazyContext{parent: parent, due: start.Add(elapsed).Add(d), cause: cause}
	c.inherit()
	return c, c.cancel
}

// WithDeadline is [context.WithDeadline] without a timer until somebody waits.
func WithDeadline(parent context.Context, d time.Time) (context.Context, context.CancelFunc) {
	return WithDeadlineCause(parent, d, nil)
}

// WithDeadlineCause is [context.WithDeadlineCause] without a timer until somebody waits.
func WithDeadlineCause(parent context.Context, d time.Time, cause error) (context.Context, context.CancelFunc) {
	now := time.Now()
	if !bubble.Monotonic(now) || !now.Before(d) || !isStandard(parent) {
		return context.WithDeadlineCause(parent, d, cause)
	}
	c := &lazyContext{parent: parent, due: d, cause: cause}
	if bubble.Monotonic(d) {
		c.deadline.Store(&c.due)
	} else {
		at := d                     // escapes only here
		c.due = now.Add(d.Sub(now)) // stays when the wall clock is set
		c.deadline.Store(&at)
	}
	c.inherit()
	return c, c.cancel
}

// start is before every other reading of the clock, except in a bubble, whose clock
// begins in 2000.
var start = time.Now()

// lazyContext is a context with a deadline. It goes through two states, and one arrow
// leads from the first to the second:
//
//	idle ── Done, the deadline, the parent's end, cancel, or many calls of Err ──▶ armed
//
// While it is idle, armed is nil: it has no timer, and its parent does not know of it.
// Then a context of package context's takes its place, and every method asks that one.
// Two goroutines that arm it at once each make one; the first to store it wins, and the
// other cancels its own.
type lazyContext struct {
	parent   context.Context
	due      time.Time                 // its monotonic reading counts
	deadline atomic.Pointer[time.Time] // what Deadline returns; nil: not known yet
	cause    error
	armed    atomic.Pointer[armedContext]
	looks    atomic.Uint32 // calls of Err while idle
	inherits bool          // the parent's deadline is earlier
}

// armedContext is one of package context's.
type armedContext struct {
	context.Context
	cancel context.CancelFunc
}

// canceled is what an idle context becomes when it is cancelled.
var canceled = func() *armedContext {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return &armedContext{ctx, func() {}}
}()

// inherit makes a new context end with its parent if the parent's deadline is earlier.
func (c *lazyContext) inherit() {
	var at time.Time
	ok := true
	if p, ours := c.parent.(*lazyContext); ours {
		at = p.due // without a look at the wall clock
	} else {
		at, ok = c.parent.Deadline()
	}
	if ok && at.Before(c.due) {
		c.inherits, c.due, c.cause = true, at, nil
	}
}

// The types of package context's contexts.
var (
	typeOfBackground    = reflect.TypeOf(context.Background())
	typeOfTODO          = reflect.TypeOf(context.TODO())
	typeOfWithCancel    = reflect.TypeOf(canceled.Context)
	typeOfWithoutCancel = reflect.TypeOf(context.WithoutCancel(canceled))
	typeOfWithValue     = reflect.TypeOf(context.WithValue(canceled, canceled, nil))
	typeOfWithDeadline  = func() reflect.Type {
		ctx, cancel := context.WithDeadline(context.Background(), time.Time{})
		cancel()
		return reflect.TypeOf(ctx)
	}()
)

// isStandard reports whether ctx is one of package context's or of ours, below any number
// of values. An idle context calls its parent's Err at any time, and a foreign one's may
// take a lock that the caller holds: contexts below one are package context's own.
func isStandard(ctx context.Context) bool {
	for {
		if _, ok := ctx.(*lazyContext); ok {
			return true
		}
		switch reflect.TypeOf(ctx) {
		case typeOfWithCancel, typeOfWithDeadline, typeOfBackground, typeOfTODO, typeOfWithoutCancel:
			return true
		case typeOfWithValue:
			// What is below it is its field Context, and Err is that one's.
			ctx = reflect.ValueOf(ctx).Elem().Field(0).Interface().(context.Context)
		default:
			return false
		}
	}
}

// passed reports whether the deadline has passed. It is false inside a bubble for a
// context from outside: the bubble's clock shows an earlier year.
func (c *lazyContext) passed() bool { return !c.inherits && time.Until(c.due) <= 0 }

// arm returns what has taken the context's place.
func (c *lazyContext) arm() *armedContext {
	if a := c.armed.Load(); a != nil {
		return a
	}
	parent := c.parent
	if parent.Err() == context.DeadlineExceeded && c.passed() {
		// The parent's deadline is later than this one, which therefore came first.
		parent = context.WithoutCancel(parent)
	}
	a := new(armedContext)
	if c.inherits {
		a.Context, a.cancel = context.WithCancel(parent)
	} else {
		a.Context, a.cancel = context.WithDeadlineCause(parent, c.due, c.cause)
	}
	if !c.armed.CompareAndSwap(nil, a) {
		a.cancel()
	}
	return c.armed.Load()
}

func (c *lazyContext) cancel() {
	// If the context ended before, it keeps its error and cause.
	if c.armed.Load() == nil && c.parent.Err() == nil && !c.passed() && c.armed.CompareAndSwap(nil, canceled) {
		return
	}
	c.arm().cancel()
}

// Done implements [context.Context].
func (c *lazyContext) Done() <-chan struct{} { return c.arm().Done() }

// looksUntilArmed is how many calls of Err cost about as much as a timer.
const looksUntilArmed = 16

// Err implements [context.Context].
func (c *lazyContext) Err() error {
	if c.armed.Load() == nil && c.parent.Err() == nil && !c.passed() && !c.lookedOften() {
		return nil
	}
	return c.arm().Err()
}

// lookedOften counts a call of Err, and reports whether the context should be armed, so
// that later calls do not read the clock. In a bubble it reports false: cancel may be
// called outside, and must not stop a timer that was made inside.
func (c *lazyContext) lookedOften() bool {
	return c.looks.Add(1) >= looksUntilArmed && !bubble.Inside()
}

// Value implements [context.Context].
func (c *lazyContext) Value(key any) any {
	if _, ok := key.(*int); ok {
		// It may be the key by which package context finds its own contexts. Up to
		// Go 1.25 [context.Cause] asks for it before it asks for Err.
		c.Err()
	}
	switch a := c.armed.Load(); a {
	case nil:
		return c.parent.Value(key)
	case canceled: // has no values
		if v := a.Value(key); v != nil {
			return v
		}
		return c.parent.Value(key)
	default:
		return a.Value(key)
	}
}

// Deadline implements [context.Context].
func (c *lazyContext) Deadline() (time.Time, bool) {
	if c.inherits {
		return c.parent.Deadline()
	}
	if c.deadline.Load() == nil {
		now := time.Now()
		at := now.Add(c.due.Sub(now)) // by the wall clock as it is now
		c.deadline.CompareAndSwap(nil, &at)
	}
	return *c.deadline.Load(), true
}

// String returns what the same context of package context would.
func (c *lazyContext) String() string {
	if c.inherits {
		return fmt.Sprintf("%v.WithCancel", c.parent)
	}
	at, _ := c.Deadline()
	return fmt.Sprintf("%v.WithDeadline(%v [%v])", c.parent, at, time.Until(at))
}
