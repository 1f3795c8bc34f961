package deadline

import (
	"context"
	"time"
)

// Lazy is WithTimeoutCause without a look at whether it is called inside a bubble: there
// the tests see what happens outside, on a clock that they move.
func Lazy(parent context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	now := time.Now()
	return newContext(parent, now, now.Add(d), cause)
}

// Armed reports whether one of package context's has taken the place of ctx, or was
// returned in the first place.
func Armed(ctx context.Context) bool {
	c, ok := ctx.(*lazyContext)
	return !ok || c.armed.Load() != nil
}
