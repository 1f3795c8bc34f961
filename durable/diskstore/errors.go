package diskstore

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tickless/tickless/durable/store"
)

var (
	// ErrLocked is returned by [Open] if another Store, in this process or another one,
	// has the directory open.
	ErrLocked = errors.New("diskstore: the directory is in use")
	// ErrForeign is returned by [Open] for a directory that has files and is not a
	// store.
	ErrForeign = errors.New("diskstore: the directory is not a store")
	// ErrDamaged is what every error wraps that says that what is on the disk is not
	// what was written there. It wraps [store.ErrUnfit].
	ErrDamaged = fmt.Errorf("diskstore: damaged: %w", store.ErrUnfit)
	// ErrFailed is what every error wraps after the disk has failed: a write or a sync
	// that was not carried out, or a file that cannot be read. The Store does nothing
	// any more: it has to be closed and opened again, which finds out what has been
	// written. The error has the cause. It wraps [store.ErrUnfit].
	//
	// A call that was under way when it happened may have been carried out. The error
	// of every later one wraps [store.ErrNotDone] too.
	ErrFailed = fmt.Errorf("diskstore: the disk failed, and the store has to be opened again: %w", store.ErrUnfit)
)

// failed is the error of calls that were under way when the disk failed.
func failed(cause error) error {
	if pebble.IsCorruptionError(cause) && !errors.Is(cause, ErrDamaged) {
		cause = fmt.Errorf("%w: %w", ErrDamaged, cause)
	}
	return fmt.Errorf("%w: %w", ErrFailed, cause)
}

// damaged returns an error that wraps ErrDamaged.
func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}
