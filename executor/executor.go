package executor

import (
	"context"
	"errors"
)

// An Executor runs callbacks. This package has three: [Inline], [Goroutines] and
// [Pool]. A program may bring its own.
type Executor interface {
	// Submit accepts f, to run it once. An error, [ErrShutdown] or [ErrOverloaded],
	// means that f has not run and never will.
	//
	// If f panics, the panic is recovered and goes to the panic handler. A nil f is
	// accepted like any other, and panics when it is called.
	Submit(f func()) error

	// SubmitBatch submits fs in order and returns how many of them, from the front,
	// it accepted. The error is nil if and only if it accepted all. The caller may
	// reuse the slice after the return.
	SubmitBatch(fs []func()) (accepted int, err error)

	// Shutdown refuses new work from the moment it is called, and waits until all
	// accepted callbacks have ended. If ctx ends first it returns the error of ctx;
	// the callbacks still run to their end. Several goroutines may call it, several
	// times: each call waits.
	//
	// A callback that calls Shutdown waits for itself, until ctx ends: pass a ctx
	// that does.
	Shutdown(ctx context.Context) error
}

var (
	// ErrShutdown is returned for work that is submitted after Shutdown, or that
	// waits for room when Shutdown is called.
	ErrShutdown = errors.New("executor: shut down")

	// ErrOverloaded is returned for work that a [Pool] refuses because its queue is
	// full and its policy is [Reject].
	ErrOverloaded = errors.New("executor: overloaded")
)
