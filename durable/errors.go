package durable

import (
	"context"
	"errors"
	"fmt"

	"github.com/tickless/tickless/durable/store"
)

var (
	// ErrInvalid is returned for input that can never be right: a key with a NUL, a
	// task that is too large, a negative delay. Nothing was sent to the store.
	ErrInvalid = errors.New("durable: invalid")
	// ErrNotFound is returned by [Client.Get] for a key that no task has.
	ErrNotFound = errors.New("durable: no such task")
	// ErrUnknown is what errors.Is finds in every [UnknownError].
	ErrUnknown = errors.New("durable: it is not known whether the command was carried out")

	// ErrNotDone is what errors.Is finds in errors that say for certain that nothing was
	// done, and not in an [UnknownError]. If the call was for many tasks, it holds for those
	// whose outcome is Unknown; the others were done.
	ErrNotDone = store.ErrNotDone
	// ErrBusy is returned if more commands wait than the store takes. Nothing was done.
	ErrBusy = store.ErrBusy
	// ErrFull is returned if the store has no room. Nothing was done.
	ErrFull = store.ErrFull
	// ErrSchema is returned if the store was made with another number of shards, or by
	// a version that stores tasks otherwise.
	ErrSchema = store.ErrSchema
	// ErrUnsafe is returned by [Client.Check] and [Worker.Run] if the store may throw
	// tasks away.
	ErrUnsafe = store.ErrUnsafe

	// ErrClosed is returned by [Worker.Run] after [Worker.Close] or [Worker.Shutdown],
	// and is the cause of a handler's context that was cancelled because the worker
	// shuts down and has waited long enough: the task is handed back, and the attempt
	// does not count.
	ErrClosed = errors.New("durable: the worker is closed")
	// ErrNotHandedBack is returned by [Worker.Run] if it has ended with attempts of
	// which the store has not confirmed how they ended, since it did not answer.
	// Those tasks come again when their leases have run out, unless the report has
	// arrived all the same. So does what an unanswered claim was given, of which
	// nobody knows.
	ErrNotHandedBack = errors.New("durable: the worker has ended without an answer to its last reports")
	// ErrLeaseLost is the cause ([context.Cause]) of a handler's context that was
	// cancelled because the worker could not prolong its lease: another worker may
	// run the task by now.
	ErrLeaseLost = errors.New("durable: the lease was lost")
	// ErrCancelled is the cause of a handler's context that was cancelled because
	// of [Client.Cancel].
	ErrCancelled = errors.New("durable: the task was cancelled")
	// ErrTimeout is the cause of a handler's context that was cancelled because
	// the attempt took longer than its timeout.
	ErrTimeout = errors.New("durable: the attempt took too long")
)

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// errLate is of a command that the store has refused since its context's deadline had
// passed by then.
var errLate = fmt.Errorf("durable: %w: %w", ErrNotDone, context.DeadlineExceeded)

// explain returns a store's error as this package's.
func explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrLate):
		return errLate
	case errors.Is(err, store.ErrNotFound):
		return ErrNotFound
	}
	return fmt.Errorf("durable: %w", err)
}

// An UnknownError says that a command was sent and not answered: it may have been
// carried out, or may still be. (If its context had a deadline it is not after
// that, by the store's clock.) [UnknownError.Again] asks.
type UnknownError struct {
	Err   error // what went wrong
	again func(context.Context) ([]Outcome, error)
}

func (e *UnknownError) Error() string   { return ErrUnknown.Error() + ": " + text(e.Err) }
func (e *UnknownError) Unwrap() []error { return []error{ErrUnknown, e.Err} }

// Again sends the same command once more. If it has been carried out it is not carried
// out again, and the outcomes are those that it had then, whatever has become of the
// tasks meanwhile. If not, it is carried out now, unless the context of its first call
// had a deadline, which is over: then the error is [context.DeadlineExceeded], and what was
// not carried out will not be. There is one outcome for each task of the call. With any
// error but another UnknownError, which says that again there is no answer, the tasks
// whose outcome is Unknown are those to which nothing was done: of a call for many tasks
// a part may have been carried out, and that part must not be sent again.
//
// The store keeps the answers for a day. It may be used by several goroutines.
func (e *UnknownError) Again(ctx context.Context) ([]Outcome, error) {
	if e.again == nil { // not made by this package
		return nil, e
	}
	return e.again(ctx)
}
