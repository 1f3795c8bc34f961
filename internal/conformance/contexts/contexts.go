// Package contexts has the names of package context, but its contexts with a deadline
// come from package deadline. Package conformance runs context's own tests on it.
package contexts

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/tickless/tickless/deadline"
)

// Names of package context that the tests use unchanged.
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

// The functions below make contexts with package deadline.

func WithTimeout(parent Context, d time.Duration) (Context, CancelFunc) {
	return WithTimeoutCause(parent, d, nil)
}

func WithTimeoutCause(parent Context, d time.Duration, cause error) (Context, CancelFunc) {
	parent, leave := insertBetween(parent)
	ctx, cancel := deadline.WithTimeoutCause(parent, d, cause)
	return ctx, func() { cancel(); leave() }
}

func WithDeadline(parent Context, at time.Time) (Context, CancelFunc) {
	return WithDeadlineCause(parent, at, nil)
}

func WithDeadlineCause(parent Context, at time.Time, cause error) (Context, CancelFunc) {
	parent, leave := insertBetween(parent)
	ctx, cancel := deadline.WithDeadlineCause(parent, at, cause)
	return ctx, func() { cancel(); leave() }
}

// InsertBetweenEnv is an environment variable. It chooses the context to insert between a
// context of package deadline and its parent: of package context ("context"), of package
// deadline ("deadline"), or of another type ("other"). Any other value inserts none.
const InsertBetweenEnv = "TICKLESS_BETWEEN"

func insertBetween(parent Context) (Context, CancelFunc) {
	if parent == nil {
		panic("cannot create context from nil parent") // the text of package context
	}
	switch os.Getenv(InsertBetweenEnv) {
	case "context":
		return context.WithCancel(parent)
	case "deadline":
		return deadline.WithTimeout(parent, 1<<62)
	case "other":
		return customContext{parent}, func() {}
	}
	return parent, func() {}
}

// customContext is a context of a type that package context does not know.
type customContext struct{ Context }

func (c customContext) String() string { return fmt.Sprint(c.Context) }
