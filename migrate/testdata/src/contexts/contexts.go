package contexts

import (
	"context"
	"errors"
	"time"
)

func four(ctx context.Context, d time.Duration) {
	a, cancel := context.WithTimeout(ctx, d) // want `context.WithTimeout can be deadline.WithTimeout \(each call\)`
	defer cancel()
	b, cancel := context.WithDeadline(a, time.Now().Add(d)) // want `context.WithDeadline can be deadline.WithDeadline`
	defer cancel()
	c, cancel := context.WithTimeoutCause(b, d, errors.New("late")) // want `context.WithTimeoutCause can be deadline.WithTimeoutCause`
	defer cancel()
	_, cancel = context.WithDeadlineCause(c, time.Now(), nil) // want `context.WithDeadlineCause can be deadline.WithDeadlineCause`
	cancel()
	make := context.WithTimeout // want `context.WithTimeout can be deadline.WithTimeout \(each call\)`
	_, cancel = make(ctx, d)
	cancel()
}

var hook = context.WithTimeout // want `can be deadline.WithTimeout`

// The name deadline means something else in other files of most packages.
func both(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d) // want `can be`
	defer cancel()
	time.AfterFunc(d, func() {}) // want `can be`
}
