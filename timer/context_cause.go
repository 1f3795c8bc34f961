package timer

import "context"

// contextKey is the key under which a deadlineCtx is its own value.
type contextKey struct{}

func (c *deadlineCtx) Value(key any) any {
	if key == (contextKey{}) {
		return c
	}
	if key == stdKinds().causeKey {
		return c.causeHolder()
	}
	return c.parent.Value(key)
}

// causeHolder returns a context of package context's with the same cause, or nil.
//
// [context.Cause] finds a context's cause by asking it for the nearest context of
// package context's, and takes the context's error if it gets nothing. Passing the
// question on would find one around ours, whose cause, if any, is another.
func (c *deadlineCtx) causeHolder() any {
	// Up to Go 1.25 the question for the cause comes before that for the error.
	switch c.phase() {
	case ctxIdle:
		c.check(c.s.now()) // Err would have it wait after some calls
	case ctxWaiting:
		c.Err()
	}
	err := c.settledErr()
	if err == nil {
		return nil
	}
	cause := c.causeOf(err)
	if c.ends() == nil {
		return nil
	}
	holder, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	return holder
}

// causeOf returns the cause of a context that has ended with err.
func (c *deadlineCtx) causeOf(err error) error {
	if ends := c.ends(); ends != nil && ends.cause != nil {
		return ends.cause
	}
	return err
}
