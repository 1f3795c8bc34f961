package redistimer

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var (
	// ErrInvalid is returned for input that can never be right: an empty key, a
	// task that is too large, a negative delay. Nothing was sent to Redis.
	ErrInvalid = errors.New("redistimer: invalid")
	// ErrNotFound is returned by [Client.Get] for a key that no task has.
	ErrNotFound = errors.New("redistimer: no such task")
	// ErrSchema is returned by every operation if the queue was made with another
	// number of shards, or by a version of this package that stores it otherwise.
	ErrSchema = errors.New("redistimer: the queue was made with other settings")
	// ErrEviction is returned by [Client.Check] and [Worker.Run] if a server may
	// throw away tasks when its memory is full.
	ErrEviction = errors.New("redistimer: the server evicts keys; set maxmemory-policy to noeviction")
	// ErrLost is what a handler of [WithLossHandler] is told if a server has lost
	// tasks: it was emptied, or started again without its data, or has thrown keys
	// away.
	ErrLost = errors.New("redistimer: the server has lost tasks")
	// ErrNotReplicated is returned by a Schedule with [Replicated] if too few
	// replicas have confirmed in time. The task is scheduled all the same.
	ErrNotReplicated = errors.New("redistimer: too few replicas have confirmed")

	// ErrUnknown is what every [UnknownError] is.
	ErrUnknown = errors.New("redistimer: it is not known whether the command was carried out")
	// ErrBusy is returned by Schedule if very many tasks wait to be sent already,
	// since the server does not answer, or not as fast as they come. The task is not
	// scheduled.
	ErrBusy = errors.New("redistimer: too many tasks wait to be scheduled")

	// ErrLeaseLost is the cause ([context.Cause]) of a handler's context that was
	// cancelled because the worker could not prolong its lease: another worker may
	// run the task by now.
	ErrLeaseLost = errors.New("redistimer: the lease was lost")
	// ErrCancelled is the cause of a handler's context that was cancelled because
	// of [Client.Cancel].
	ErrCancelled = errors.New("redistimer: the task was cancelled")
	// ErrTimeout is the cause of a handler's context that was cancelled because
	// the attempt took longer than its timeout.
	ErrTimeout = errors.New("redistimer: the attempt took too long")
	// ErrShutdown is the cause of a handler's context that was cancelled because
	// the worker shuts down and has waited long enough. The task is handed back:
	// the attempt does not count. [Worker.Run] returns it after [Worker.Shutdown].
	ErrShutdown = errors.New("redistimer: the worker shuts down")
	// ErrNotHandedBack is returned by [Worker.Run] if it has ended with attempts of
	// which the server has not confirmed how they ended, since it did not answer.
	// Those tasks come again when their leases have run out, unless the report has
	// arrived all the same. So does what an unanswered claim was given, of which
	// nobody knows.
	ErrNotHandedBack = errors.New("redistimer: the worker has ended without an answer to its last reports")
)

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// An UnknownError says that a command was sent and not answered: it may have been
// carried out, or may still be. (If its context had a deadline it is not after
// that, by the clock of Redis.) [UnknownError.Again] asks.
type UnknownError struct {
	Err   error // what went wrong
	again func(context.Context) ([]Outcome, error)
}

func (e *UnknownError) Error() string   { return ErrUnknown.Error() + ": " + text(e.Err) }
func (e *UnknownError) Unwrap() []error { return []error{ErrUnknown, e.Err} }

// Again sends the same command once more, as often as it takes. If it has been
// carried out it is not carried out again, and the outcomes are those that it had
// then, whatever has become of the tasks meanwhile. If not, it is carried out now,
// unless the context of its first call had a deadline, which is over: then the
// error is [context.DeadlineExceeded], and nothing was done and will be. There is
// one outcome for each task of the call. If there is no answer once more, because
// ctx has ended for example, the error is an UnknownError again, which says why.
//
// Redis keeps the answers for a day. It may be used by several goroutines.
func (e *UnknownError) Again(ctx context.Context) ([]Outcome, error) {
	if e.again == nil { // not made by this package
		return nil, e
	}
	return e.again(ctx)
}

// unansweredError is of an item of a command that was not answered.
type unansweredError struct{ error }

// unsentError is of a command that was not sent.
type unsentError struct{ err error }

func (e *unsentError) Error() string { return e.err.Error() }
func (e *unsentError) Unwrap() error { return e.err }

func isUnsent(err error) bool {
	var unsent *unsentError
	return errors.As(err, &unsent)
}

// A NoRetryError is returned by a handler to make a dead letter of its task at
// once, whatever attempts are left. [NoRetry] makes one.
type NoRetryError struct{ Err error }

// NoRetry says that the task shall not be tried again. It returns nil for nil.
func NoRetry(err error) error {
	if err == nil {
		return nil
	}
	return &NoRetryError{err}
}

func (e *NoRetryError) Error() string { return text(e.Err) }
func (e *NoRetryError) Unwrap() error { return e.Err }

// A RetryAfterError is returned by a handler to have its task tried again, if it
// has attempts left, after a delay of the handler's choice instead of the
// worker's: what a Retry-After header of HTTP asks for. [RetryAfter] makes one.
type RetryAfterError struct {
	Err error
	// After is the delay; zero is at once, and what is negative counts as zero. It
	// is used as it is, without jitter and beyond the worker's cap, up to 170 years.
	After time.Duration
}

// RetryAfter says that the task shall be tried again after d. It returns nil if
// err is nil.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &RetryAfterError{err, d}
}

func (e *RetryAfterError) Error() string { return text(e.Err) }
func (e *RetryAfterError) Unwrap() error { return e.Err }

// A HandBackError is returned by a handler that cannot take a task now: what it
// needs has no room, or the process is not the right one. The attempt does not
// count, the task is pending again, and whichever worker comes first gets it after
// the delay. [HandBack] makes one.
type HandBackError struct {
	Err error
	// After is the delay, up to 170 years; zero is at once, and what is negative
	// counts as zero.
	After time.Duration
}

// HandBack says that the task shall be taken by whoever comes after d, as if it had
// not been tried. How often is not limited. It returns nil if err is nil.
func HandBack(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &HandBackError{err, d}
}

func (e *HandBackError) Error() string { return text(e.Err) }
func (e *HandBackError) Unwrap() error { return e.Err }

func text(err error) string {
	if err == nil {
		return "(no error)"
	}
	return err.Error()
}
