package deadline

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"sync/atomic" // as in package timer
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
	deadline := elapsed + d
	if deadline < 0 { // the sum overflows
		deadline = math.MaxInt64
	}
	// The first call of Deadline computes the deadline by the wall clock: few callers
	// need it.
	c := &lazyContext{parent: parent, deadline: deadline, cause: cause}
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
	if !bubble.HasMonotonic(now) || !now.Before(d) || !isStandard(parent) {
		return context.WithDeadlineCause(parent, d, cause)
	}
	c := &lazyContext{parent: parent, deadline: sinceProgramStart(d), cause: cause}
	at := d // a copy, so that d itself does not escape
	c.reportedDeadline.Store(&at)
	c.inheritDeadline()
	return c, c.cancel
}

// programStart is the time at which the program began. In a synctest bubble, the clock
// shows earlier times: there time begins in 2000.
var programStart = time.Now()

// sinceProgramStart returns the time from programStart to t. If t has no monotonic
// reading, it counts by the present wall clock.
func sinceProgramStart(t time.Time) time.Duration {
	start := programStart
	if !bubble.HasMonotonic(t) {
		now := time.Now()
		start = now.Add(programStart.Sub(now))
	}
	return t.Sub(start)
}

// lazyContext is a context with a deadline, in one of two states:
//
//	idle    no timer is set; the parent does not know the context; the field armedCtx is nil
//	armed   the field armedCtx is a context of package context, which all methods call
//
// A context becomes armed by Done or cancel, or by Err if the context has ended or Err
// was called many times.
type lazyContext struct {
	parent           context.Context
	deadline         time.Duration             // since programStart; does not move when the wall clock is set
	reportedDeadline atomic.Pointer[time.Time] // the deadline that the method Deadline returns; nil until known
	cause            error
	armedCtx         atomic.Pointer[armedContext]
	errCallCount     atomic.Uint32 // calls of Err while idle
	inheritsDeadline bool          // the parent's deadline is earlier and applies
}

// armedContext is a context of package context with its cancel function.
type armedContext struct {
	context.Context
	cancel context.CancelFunc
}

// canceledCtx is stored in the field armedCtx if a context is cancelled while idle.
var canceledCtx = func() *armedContext {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return &armedContext{ctx, func() {}}
}()

// inheritDeadline gives c the deadline of its parent, if that is earlier. Then c needs
// no timer, because it ends with its parent.
func (c *lazyContext) inheritDeadline() {
	var d time.Duration
	if p, ours := c.parent.(*lazyContext); ours {
		d = p.deadline
	} else if at, ok := c.parent.Deadline(); ok {
		d = sinceProgramStart(at)
	} else {
		return
	}
	if d < c.deadline {
		c.inheritsDeadline, c.deadline, c.cause = true, d, nil
	}
}

// The types of package context's contexts.
var (
	typeOfBackground    = reflect.TypeOf(context.Background())
	typeOfTODO          = reflect.TypeOf(context.TODO())
	typeOfWithCancel    = reflect.TypeOf(canceledCtx.Context)
	typeOfWithoutCancel = reflect.TypeOf(context.WithoutCancel(canceledCtx))
	typeOfWithValue     = reflect.TypeOf(context.WithValue(canceledCtx, canceledCtx, nil))
	typeOfWithDeadline  = func() reflect.Type {
		ctx, cancel := context.WithDeadline(context.Background(), time.Time{})
		cancel()
		return reflect.TypeOf(ctx)
	}()
)

// isStandard reports whether ctx is a context of package context or of this package.
// A lazyContext needs such a parent, because it calls the parent's Err. The Err of
// another type might wait for a lock that the caller holds.
func isStandard(ctx context.Context) bool {
	for {
		if _, ok := ctx.(*lazyContext); ok {
			return true
		}
		switch reflect.TypeOf(ctx) {
		case typeOfWithCancel, typeOfWithDeadline, typeOfBackground, typeOfTODO, typeOfWithoutCancel:
			return true
		case typeOfWithValue:
			// A context of WithValue depends on its parent, in field 0.
			ctx = reflect.ValueOf(ctx).Elem().Field(0).Interface().(context.Context)
		default:
			return false
		}
	}
}

// deadlinePassed reports whether c's deadline has passed. It returns false if the
// deadline is the parent's.
func (c *lazyContext) deadlinePassed() bool {
	return !c.inheritsDeadline && time.Since(programStart) >= c.deadline
}

// arm returns the context in the field armedCtx. If c is idle, arm makes this context
// first.
func (c *lazyContext) arm() *armedContext {
	if a := c.armedCtx.Load(); a != nil {
		return a
	}
	parent := c.parent
	if parent.Err() == context.DeadlineExceeded && c.deadlinePassed() {
		// c's deadline has passed before the parent's. So c must report its own timeout
		// and cause, not the parent's.
		parent = context.WithoutCancel(parent)
	}
	a := new(armedContext)
	if c.inheritsDeadline {
		a.Context, a.cancel = context.WithCancel(parent)
	} else {
		a.Context, a.cancel = context.WithDeadlineCause(parent, programStart.Add(c.deadline), c.cause)
	}
	if !c.armedCtx.CompareAndSwap(nil, a) {
		a.cancel() // another goroutine has armed c
	}
	return c.armedCtx.Load()
}

func (c *lazyContext) cancel() {
	// If c has already ended, it keeps its error and cause: arm makes a context with
	// both, and cancelling that changes nothing.
	if c.armedCtx.Load() == nil && c.parent.Err() == nil && !c.deadlinePassed() && c.armedCtx.CompareAndSwap(nil, canceledCtx) {
		return
	}
	c.arm().cancel()
}

// Done implements [context.Context].
func (c *lazyContext) Done() <-chan struct{} { return c.arm().Done() }

// errCallLimit is the number of calls of Err at which an idle context becomes armed. So
// many calls cost about as much as a timer.
const errCallLimit = 16

// Err implements [context.Context].
func (c *lazyContext) Err() error {
	if c.armedCtx.Load() == nil && c.parent.Err() == nil && !c.deadlinePassed() && !c.countErrCall() {
		return nil
	}
	return c.arm().Err()
}

// countErrCall counts a call of Err on an idle context. It reports true after many
// calls: Err should then arm the context, so that it no longer reads the clock.
func (c *lazyContext) countErrCall() bool {
	return c.errCallCount.Add(1) >= errCallLimit && !bubble.Inside() // the timer of a bubble cannot be stopped outside it
}

// Value implements [context.Context].
func (c *lazyContext) Value(key any) any {
	if _, ok := key.(*int); ok {
		// Up to Go 1.25, [context.Cause] calls Value with a key of type *int, without a
		// call of Err before it. If c has ended, this call of Err makes the context
		// that knows the cause.
		c.Err()
	}
	switch a := c.armedCtx.Load(); a {
	case nil:
		return c.parent.Value(key)
	case canceledCtx: // has no values
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
	if c.inheritsDeadline {
		return c.parent.Deadline()
	}
	if c.reportedDeadline.Load() == nil {
		now := time.Now()
		at := now.Add(programStart.Add(c.deadline).Sub(now)) // by the present wall clock
		c.reportedDeadline.CompareAndSwap(nil, &at)
	}
	return *c.reportedDeadline.Load(), true
}

// String returns what the corresponding context of package context would return.
func (c *lazyContext) String() string {
	if c.inheritsDeadline {
		return fmt.Sprintf("%v.WithCancel", c.parent)
	}
	at, _ := c.Deadline()
	return fmt.Sprintf("%v.WithDeadline(%v [%v])", c.parent, at, time.Until(at))
}
