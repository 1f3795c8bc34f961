package deadline

import (
	"context"
	"time"
)

// Lazy is WithTimeoutCause without the special case for bubbles. Tests call it in a
// bubble, where they control the clock, to observe an idle context.
func Lazy(parent context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	if d <= 0 || !isStandard(parent) {
		return context.WithTimeoutCause(parent, d, cause)
	}
	c := &lazyContext{parent: parent, due: time.Now().Add(d), cause: cause}
	c.inheritDeadline()
	return c, c.cancel
}

// Armed reports whether ctx is armed, or a plain context of package context.
func Armed(ctx context.Context) bool {
	c, ok := ctx.(*lazyContext)
	return !ok || c.armed.Load() != nil
}
