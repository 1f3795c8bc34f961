// Package contexts has package context's names, with contexts of package deadline's
// in place of those that have a deadline. Package conformance runs package
// context's own tests against it.
package contexts

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/tickless/tickless/deadline"
)

// What the tests use of package context as it is.
type (
	Context         = context.Context
	CancelFunc      = context.CancelFunc
	CancelCauseFunc = context.CancelCauseFunc
)

var (
	Canceled         = context.Canceled
	DeadlineExceeded = context.DeadlineExceeded

	Background      = context.Background
	TODO            = context.TODO
	WithCancel      = context.WithCancel
	WithCancelCause = context.WithCancelCause
	WithValue       = context.WithValue
	WithoutCancel   = context.WithoutCancel
	AfterFunc       = context.AfterFunc
	Cause           = context.Cause
)

// The rest is package deadline's.

func WithTimeout(parent Context, d time.Duration) (Context, CancelFunc) {
	return WithTimeoutCause(parent, d, nil)
}

func WithTimeoutCause(parent Context, d time.Duration, cause error) (Context, CancelFunc) {
	parent, leave := between(parent)
	ctx, cancel := deadline.WithTimeoutCause(parent, d, cause)
	return ctx, func() { cancel(); leave() }
}

func WithDeadline(parent Context, at time.Time) (Context, CancelFunc) {
	return WithDeadlineCause(parent, at, nil)
}

func WithDeadlineCause(parent Context, at time.Time, cause error) (Context, CancelFunc) {
	parent, leave := between(parent)
	ctx, cancel := deadline.WithDeadlineCause(parent, at, cause)
	return ctx, func() { cancel(); leave() }
}

// Between names the variable that says what is put between a context of package
// deadline's and its parent: nothing, one of package context's, one of package
// deadline's, or one of another kind.
const Between = "TICKLESS_BETWEEN"

func between(parent Context) (Context, CancelFunc) {
	if parent == nil {
		panic("cannot create context from nil parent") // package context says so too
	}
	switch os.Getenv(Between) {
	case "context":
		return context.WithCancel(parent)
	case "deadline":
		return deadline.WithTimeout(parent, 1<<62)
	case "other":
		return other{parent}, func() {}
	}
	return parent, func() {}
}

// other is a context of a type that package context does not know.
type other struct{ Context }

func (c other) String() string { return fmt.Sprint(c.Context) }
