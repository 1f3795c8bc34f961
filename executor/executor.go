package executor

import (
	"context"
	"errors"
)

// An Executor runs callbacks. [Inline], [Goroutines] and [Pool] are the three
// of this package; a program may bring its own.
type Executor interface {
	// Submit hands f over to be run once. An error, [ErrShutdown] or
	// [ErrOverloaded], means that f has not run and never will.
	//
	// What f panics with is recovered and goes to the panic handler. That
	// includes the panic of calling a nil f, which is accepted like any other.
	Submit(f func()) error

	// SubmitBatch hands over fs in order and returns how many of them, from
	// the front, were accepted; the error is nil exactly when all were. The
	// slice is the caller's again on return.
	SubmitBatch(fs []func()) (accepted int, err error)

	// Shutdown refuses new work from the moment it is called and waits until
	// everything that was accepted has run. If ctx ends first it returns the
	// error of ctx, and the callbacks still run to their end. It may be called
	// several times and from several goroutines: each call waits for itself.
	//
	// A callback that calls Shutdown waits for itself, so it gets nothing but
	// the error of its ctx: give it one that ends.
	Shutdown(ctx context.Context) error
}

var (
	// ErrShutdown is the error of work that was offered after Shutdown, or
	// that was waiting for room when Shutdown was called.
	ErrShutdown = errors.New("executor: shut down")

	// ErrOverloaded is the error of work that a [Pool] refused because its
	// queue was full and its policy is [Reject].
	ErrOverloaded = errors.New("executor: overloaded")
)

// await waits for done, or for ctx to end. When both hold, done wins.
func await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	default:
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
