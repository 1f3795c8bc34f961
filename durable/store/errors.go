package store

import (
	"context"
	"errors"
	"fmt"
)

var (
	// ErrNotDone is wrapped by the errors of calls that certainly changed nothing.
	ErrNotDone = errors.New("not carried out")
	// ErrInvalid is returned for invalid input.
	ErrInvalid = fmt.Errorf("store: invalid: %w", ErrNotDone)
	// ErrLate is returned for a command that arrives after its Until.
	ErrLate = fmt.Errorf("store: the deadline has passed: %w", ErrNotDone)
	// ErrBusy is returned if too many commands are waiting.
	ErrBusy = fmt.Errorf("store: too many commands are waiting: %w", ErrNotDone)
	// ErrFull is returned if the store is out of space.
	ErrFull = fmt.Errorf("store: the store is full: %w", ErrNotDone)
	// ErrClosed is returned after the store was closed. If the store closes during a
	// command, the error does not wrap ErrNotDone: the command may have taken effect.
	ErrClosed = fmt.Errorf("store: closed: %w", ErrNotDone)
	// ErrStale is returned for a command if its sender has already sent a later one.
	// The command may have taken effect earlier.
	ErrStale = errors.New("store: the sender has sent a later command")

	// ErrNotFound is returned by Get if there is no such task.
	ErrNotFound = errors.New("store: no such task")

	// ErrUnfit is wrapped by permanent errors: somebody must change the store's setup.
	ErrUnfit = errors.New("store: unfit")
	// ErrSchema is returned if the stored data has another version, or another number
	// of shards, than the program expects.
	ErrSchema = fmt.Errorf("%w: created with other settings", ErrUnfit)
	// ErrDamaged is wrapped by the errors of calls that meet damaged data.
	ErrDamaged = fmt.Errorf("%w: damaged data", ErrUnfit)
	// ErrUnsafe is returned by Check if the store may discard tasks.
	ErrUnsafe = fmt.Errorf("%w: it may lose tasks", ErrUnfit)
)

// Ended returns nil unless ctx has ended. The error wraps [ErrNotDone] and the context's
// error. Stores call Ended before they change anything.
func Ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("store: %w: %w", ErrNotDone, err)
	}
	return nil
}

// invalidf returns an ErrInvalid with a text. It shortens the arguments that are strings.
func invalidf(format string, args ...any) error {
	for i, x := range args {
		if s, ok := x.(string); ok {
			args[i] = Shorten(s)
		}
	}
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}
