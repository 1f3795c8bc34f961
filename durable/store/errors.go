package store

import (
	"context"
	"errors"
	"fmt"
)

var (
	// ErrNotDone is what every error wraps that says for certain that nothing was
	// changed.
	ErrNotDone = errors.New("not carried out")
	// ErrInvalid is returned for input that can never be right.
	ErrInvalid = fmt.Errorf("store: invalid: %w", ErrNotDone)
	// ErrLate is returned for a command whose Until has passed.
	ErrLate = fmt.Errorf("store: the command came after its deadline: %w", ErrNotDone)
	// ErrBusy is returned if more commands wait than the store takes.
	ErrBusy = fmt.Errorf("store: too many commands wait: %w", ErrNotDone)
	// ErrFull is returned if the store has no room.
	ErrFull = fmt.Errorf("store: no room: %w", ErrNotDone)
	// ErrClosed is returned after the store was closed. Where what is below a store is
	// closed while a command is under way, as a client of Redis can be, errors.Is may find
	// ErrClosed in an error in which it does not find ErrNotDone: then the command may have
	// been carried out.
	ErrClosed = fmt.Errorf("store: closed: %w", ErrNotDone)
	// ErrStale is returned for a command that was overtaken by a later one of its
	// sender. It may have been carried out before.
	ErrStale = errors.New("store: the sender has sent a later command")

	// ErrNotFound is returned by Get.
	ErrNotFound = errors.New("store: no such task")

	// ErrUnfit is what every error of Check wraps that does not pass by itself.
	ErrUnfit = errors.New("store: unfit")
	// ErrSchema is returned if what is stored was made with another number of shards,
	// or by another version.
	ErrSchema = fmt.Errorf("%w: it was made with other settings", ErrUnfit)
	// ErrUnsafe is returned by Check if the store may throw tasks away.
	ErrUnsafe = fmt.Errorf("%w: it may throw tasks away", ErrUnfit)
)

// Ended returns nil, or that a call was not begun since its context has ended: an error
// that wraps both [ErrNotDone] and the context's.
func Ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("store: %w: %w", ErrNotDone, err)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}
