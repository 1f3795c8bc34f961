package contexts

import (
	"context"
	"errors"
	"time"
)

func four(ctx context.Context, d time.Duration) {
	a, cancel := context.WithTimeout(ctx, d) // want `context.WithTimeout can be timer.Default\(\).WithTimeout \(each call\), unless a testing.synctest bubble that another package makes runs it`
	defer cancel()
	b, cancel := context.WithDeadline(a, time.Now().Add(d)) // want `context.WithDeadline can be timer.Default\(\).WithDeadline`
	defer cancel()
	c, cancel := context.WithTimeoutCause(b, d, errors.New("late")) // want `context.WithTimeoutCause can be timer.Default\(\).WithTimeoutCause`
	defer cancel()
	_, cancel = context.WithDeadlineCause(c, time.Now(), nil) // want `context.WithDeadlineCause can be timer.Default\(\).WithDeadlineCause`
	cancel()
	make := context.WithTimeout // want `context.WithTimeout can be timer.Default\(\).WithTimeout \(each call\), unless a testing.synctest bubble that another package makes runs it`
	_, cancel = make(ctx, d)
	cancel()
}

var hook = context.WithTimeout // want `context.WithTimeout is left: a package's variable would make the default Scheduler when the program starts`
