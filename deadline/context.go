package deadline

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/tickless/tickless/internal/bubble"
)

// WithTimeout is like [context.WithTimeout], but starts no timer until the context is
// waited for.
func WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return WithTimeoutCause(parent, d, nil)
}

// WithTimeoutCause is like [context.WithTimeoutCause], but starts no timer until the
// context is waited for.
func WithTimeoutCause(parent context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	elapsed := time.Since(programStart)
	if elapsed < 0 || d <= 0 || !isStandard(parent) {
		return context.WithTimeoutCause(parent, d, cause)
	}
	// The wall-clock deadline is computed by the first call of Deadline: few callers
	// need it.
	c := &lazyContext{parent: parent, due: programStart.Add(elapsed).Add(d), cause: cause}
	c.inheritDeadline()
	return c, c.cancel
}

// WithDeadline is like [context.WithDeadline], but starts no timer until the context is
// waited for.
func WithDeadline(parent context.Context, d time.Time) (context.Context, context.CancelFunc) {
	return WithDeadlineCause(parent, d, nil)
}

// WithDeadlineCause is like [context.WithDeadlineCause], but starts no timer until the
// context is waited for.
func WithDeadlineCause(parent context.Context, d time.Time, cause error) (context.Context, context.CancelFunc) {
	now := time.Now()
	if !bubble.Monotonic(now) || !now.Before(d) || !isStandard(parent) {
		return context.WithDeadlineCause(parent, d, cause)
	}
	c := &lazyContext{parent: parent, due: d, cause: cause}
	if bubble.Monotonic(d) {
		c.deadline.Store(&c.due)
	} else {
		at := d                     // a copy, so that d itself does not escape
		c.due = now.Add(d.Sub(now)) // does not move when the wall clock is set
		c.deadline.Store(&at)
	}
	c.inheritDeadline()
	return c, c.cancel
}

// programStart is the time at which the program began. In a synctest bubble, the clock
// shows earlier times: there time begins in 2000.
var programStart = time.Now()

// lazyContext is a context with a deadline. It is idle at first, and later armed:
//
//	idle    no timer; the parent does not know of the context; armed is nil
//	armed   all methods delegate to armed, a context of package context
//
// Done and cancel arm the context. Err arms it if the deadline has passed, if the parent
// has ended, or if Err is called often.
//
// If two goroutines arm the context at once, each makes a context of package context.
// The first one stored is used, and the second is cancelled.
type lazyContext struct {
	parent   context.Context
	due      time.Time                 // the deadline, with a monotonic reading
	deadline atomic.Pointer[time.Time] // the result of Deadline; nil until known
	cause    error
	armed    atomic.Pointer[armedContext]
	errCalls atomic.Uint32 // calls of Err while idle
	inherits bool          // the parent's deadline is earlier and applies
}

// armedContext is a context of package context with its cancel function.
type armedContext struct {
	context.Context
	cancel context.CancelFunc
}

// canceled is the value of armed if a context is cancelled while it is idle.
var canceled = func() *armedContext {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return &armedContext{ctx, func() {}}
}()

// inheritDeadline gives c the deadline of its parent, if that is earlier. Then c needs
// no timer, because it ends with its parent.
func (c *lazyContext) inheritDeadline() {
	var at time.Time
	ok := true
	if p, ours := c.parent.(*lazyContext); ours {
		at = p.due // does not read the wall clock
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

// isStandard reports whether ctx is a context of package context or of this package. Any
// other context is foreign. A context of WithValue counts like its parent.
//
// An idle context calls its parent's Err, perhaps on a goroutine that holds a lock. The
// Err of a foreign parent may take the same lock, and would wait for ever. So a context
// below a foreign parent is never idle.
func isStandard(ctx context.Context) bool {
	for {
		if _, ok := ctx.(*lazyContext); ok {
			return true
		}
		switch reflect.TypeOf(ctx) {
		case typeOfWithCancel, typeOfWithDeadline, typeOfBackground, typeOfTODO, typeOfWithoutCancel:
			return true
		case typeOfWithValue:
			// Field 0 of a value context is its parent.
			ctx = reflect.ValueOf(ctx).Elem().Field(0).Interface().(context.Context)
		default:
			return false
		}
	}
}

// passed reports whether c's own deadline has passed. It returns false in a synctest
// bubble if c was made outside: the bubble's clock shows an earlier year.
func (c *lazyContext) passed() bool { return !c.inherits && time.Until(c.due) <= 0 }

// arm returns the context that c delegates to. It makes one if c is idle.
func (c *lazyContext) arm() *armedContext {
	if a := c.armed.Load(); a != nil {
		return a
	}
	parent := c.parent
	if parent.Err() == context.DeadlineExceeded && c.passed() {
		// Both deadlines have passed, c's first. So c must not report the parent's end.
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
	// If c has already ended, c becomes armed instead, and keeps its error and cause.
	if c.armed.Load() == nil && c.parent.Err() == nil && !c.passed() && c.armed.CompareAndSwap(nil, canceled) {
		return
	}
	c.arm().cancel()
}

// Done implements [context.Context].
func (c *lazyContext) Done() <-chan struct{} { return c.arm().Done() }

// errCallsUntilArmed is the number of calls of Err after which a context is armed. So
// many calls cost about as much as a timer.
const errCallsUntilArmed = 16

// Err implements [context.Context].
func (c *lazyContext) Err() error {
	if c.armed.Load() == nil && c.parent.Err() == nil && !c.passed() && !c.countErrCall() {
		return nil
	}
	return c.arm().Err()
}

// countErrCall counts a call of Err. It reports whether c should now be armed, so that
// later calls need not read the clock.
//
// In a synctest bubble it returns false, because an armed context has a timer. If the
// timer started inside the bubble, a cancel outside the bubble could not stop it.
func (c *lazyContext) countErrCall() bool {
	return c.errCalls.Add(1) >= errCallsUntilArmed && !bubble.Inside()
}

// Value implements [context.Context].
func (c *lazyContext) Value(key any) any {
	if _, ok := key.(*int); ok {
		// key may be the private key with which package context finds its own contexts.
		// Up to Go 1.25, [context.Cause] looks up this key, but does not call Err. So
		// call Err here: it arms c if c has ended.
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
		at := now.Add(c.due.Sub(now)) // by the present wall clock
		c.deadline.CompareAndSwap(nil, &at)
	}
	return *c.deadline.Load(), true
}

// String returns what the corresponding context of package context would return.
func (c *lazyContext) String() string {
	if c.inherits {
		return fmt.Sprintf("%v.WithCancel", c.parent)
	}
	at, _ := c.Deadline()
	return fmt.Sprintf("%v.WithDeadline(%v [%v])", c.parent, at, time.Until(at))
}
