package durable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tickless/tickless/durable/internal/worker"
	"github.com/tickless/tickless/durable/store"
)

var (
	// ErrInvalid is returned for invalid input, such as a key with a NUL or a negative
	// delay. No command was sent to the store.
	ErrInvalid = errors.New("durable: invalid")
	// ErrNotFound is returned by [Client.Get] and [Client.Explain] if there is no such task.
	ErrNotFound = errors.New("durable: no such task")
	// ErrUnknown matches every [UnknownError] with errors.Is.
	ErrUnknown = errors.New("durable: unknown whether the command was carried out")

	// ErrNotDone matches, with errors.Is, the error of a command that had no effect. If
	// the call has several tasks, this is certain only for tasks whose outcome is Unknown.
	ErrNotDone = store.ErrNotDone
	// ErrBusy is returned if too many commands are waiting for the store. The command
	// had no effect.
	ErrBusy = store.ErrBusy
	// ErrFull is returned if the store is out of space. The command had no effect.
	ErrFull = store.ErrFull
	// ErrSchema is returned if the number of shards or the data format of the store is
	// not what this program expects.
	ErrSchema = store.ErrSchema
	// ErrUnsafe is returned by [Client.Check] and [Worker.Run] if the store may discard
	// tasks.
	ErrUnsafe = store.ErrUnsafe

	// ErrClosed is returned by [Worker.Run] after [Worker.Close] or [Worker.Shutdown].
	// It is also the cause of a handler's context if the worker ends before the handler
	// returns. The worker then hands the task back to the store, and the attempt does
	// not count.
	ErrClosed = worker.ErrClosed
	// ErrNotHandedBack is returned by [Worker.Run] if the store did not confirm its
	// last reports. Their tasks may run again when the leases have expired.
	ErrNotHandedBack = errors.New("durable: the worker has ended without an answer to its last reports")
	// ErrLeaseLost is the cause ([context.Cause]) of a handler's context if the worker
	// could not extend the lease. Another worker may be running the task.
	ErrLeaseLost = worker.ErrLeaseLost
	// ErrCancelled is the cause of a handler's context if [Client.Cancel] cancelled the
	// task.
	ErrCancelled = worker.ErrCancelled
	// ErrTimeout is the cause of a handler's context if the attempt exceeded its
	// timeout.
	ErrTimeout = errors.New("durable: the attempt took too long")
)

// invalidError returns an ErrInvalid with a text. It shortens the arguments that are
// strings or errors.
func invalidError(format string, args ...any) error {
	for i, x := range args {
		switch x := x.(type) {
		case string:
			args[i] = store.Shorten(x)
		case error:
			args[i] = fmt.Sprintf("%.400s", x)
		}
	}
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// errLate is the error of a command that reached the store after its context's
// deadline.
var errLate = fmt.Errorf("durable: %w: %w", ErrNotDone, context.DeadlineExceeded)

// clientError translates a store's error into an error of this package.
func clientError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrLate):
		return errLate
	case errors.Is(err, store.ErrNotFound):
		return ErrNotFound
	case errors.Is(err, store.ErrInvalid):
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return fmt.Errorf("durable: %w", err)
}

// An UnknownError means that a command was sent but not answered. The command may have
// had its effect, or may have it later, until its context's deadline. To find out, call
// [UnknownError.Again].
type UnknownError struct {
	Err   error // what went wrong
	again func(context.Context) ([]Outcome, error)
}

func (e *UnknownError) Error() string   { return ErrUnknown.Error() + ": " + errorText(e.Err) }
func (e *UnknownError) Unwrap() []error { return []error{ErrUnknown, e.Err} }

// Again sends the command again, and returns one outcome for each task of the call. If
// the store has already carried out the command, it returns the outcomes of that time.
// If not, it carries out the command now. But after the deadline of the first call's
// context it refuses, and the error is [context.DeadlineExceeded].
//
// Another UnknownError means that there was no answer again. With any other error, each
// outcome is final: Unknown means that the command had no effect on the task.
//
// The store keeps the answers for a day.
func (e *UnknownError) Again(ctx context.Context) ([]Outcome, error) {
	if e.again == nil { // not made by this package
		return nil, e
	}
	return e.again(ctx)
}

// A handler returns a NoRetryError to make the task a dead letter, even if attempts are
// left: see [NoRetry].
type NoRetryError struct{ Err error }

// NoRetry wraps err so that the task is not tried again. It returns nil if err is nil.
func NoRetry(err error) error {
	if err == nil {
		return nil
	}
	return &NoRetryError{err}
}

func (e *NoRetryError) Error() string { return errorText(e.Err) }
func (e *NoRetryError) Unwrap() error { return e.Err }

// A handler returns a RetryAfterError to set the delay before the next attempt. It has
// no effect after the last attempt. See [RetryAfter].
type RetryAfterError struct {
	Err error
	// After is the delay. Zero or less means immediately. It may exceed the limit of
	// [WithBackoff].
	After time.Duration
}

// RetryAfter wraps err so that the task is tried again after d. It returns nil if err
// is nil.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &RetryAfterError{err, d}
}

func (e *RetryAfterError) Error() string { return errorText(e.Err) }
func (e *RetryAfterError) Unwrap() error { return e.Err }

// A handler returns a HandBackError if another worker must run the task. After the
// delay any worker may claim the task. The attempt does not count. See [HandBack].
type HandBackError struct {
	Err error
	// After is the delay. Zero or less means immediately.
	After time.Duration
}

// HandBack wraps err in a [HandBackError] with the delay d. It returns nil if err is
// nil.
func HandBack(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &HandBackError{err, d}
}

func (e *HandBackError) Error() string { return errorText(e.Err) }
func (e *HandBackError) Unwrap() error { return e.Err }

func errorText(err error) string {
	if err == nil {
		return "(no error)"
	}
	return err.Error()
}
