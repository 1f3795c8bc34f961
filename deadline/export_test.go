package deadline

import (
	"context"
	"time"
	"unsafe"
)

// ContextSize is the size of a context, in bytes.
const ContextSize = unsafe.Sizeof(lazyContext{})

// Lazy is WithTimeoutCause, but makes an idle context even in a synctest bubble, where
// the tests control the clock.
func Lazy(parent context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	if d <= 0 || !isStandard(parent) {
		return context.WithTimeoutCause(parent, d, cause)
	}
	c := &lazyContext{parent: parent, deadline: time.Since(programStart) + d, cause: cause}
	c.inheritDeadline()
	return c, c.cancel
}

// Armed reports whether ctx is armed, or is a context of package context itself.
func Armed(ctx context.Context) bool {
	c, ok := ctx.(*lazyContext)
	return !ok || c.armedCtx.Load() != nil
}
