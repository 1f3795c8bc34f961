package timer

import (
	"context"
	"time"
)

// WithTimeout is [Scheduler.WithTimeout] on the default Scheduler, and package
// context's inside a testing/synctest bubble.
func WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if s, _ := outsideBubble(); s != nil {
		return s.WithTimeout(parent, d)
	}
	return context.WithTimeout(parent, d)
}

// WithTimeoutCause is [Scheduler.WithTimeoutCause] on the default Scheduler, and package
// context's inside a testing/synctest bubble.
func WithTimeoutCause(parent context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	if s, _ := outsideBubble(); s != nil {
		return s.WithTimeoutCause(parent, d, cause)
	}
	return context.WithTimeoutCause(parent, d, cause)
}

// WithDeadline is [Scheduler.WithDeadline] on the default Scheduler, and package
// context's inside a testing/synctest bubble.
func WithDeadline(parent context.Context, deadline time.Time) (context.Context, context.CancelFunc) {
	if s, _ := outsideBubble(); s != nil {
		return s.WithDeadline(parent, deadline)
	}
	return context.WithDeadline(parent, deadline)
}

// WithDeadlineCause is [Scheduler.WithDeadlineCause] on the default Scheduler, and
// package context's inside a testing/synctest bubble.
func WithDeadlineCause(parent context.Context, deadline time.Time, cause error) (context.Context, context.CancelFunc) {
	if s, _ := outsideBubble(); s != nil {
		return s.WithDeadlineCause(parent, deadline, cause)
	}
	return context.WithDeadlineCause(parent, deadline, cause)
}
