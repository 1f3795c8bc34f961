package sqlitestore

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/tickless/tickless/durable/store"
)

var (
	// ErrDamaged is what every error wraps that says that what is in the file is not what
	// was written there. It wraps [store.ErrUnfit].
	ErrDamaged = fmt.Errorf("sqlitestore: the file is damaged: %w", store.ErrUnfit)
	// ErrGone is returned if the file was removed or replaced since the Store was opened.
	// It wraps [store.ErrUnfit] and [store.ErrNotDone].
	ErrGone = fmt.Errorf("sqlitestore: the file was removed or replaced: %w: %w", store.ErrUnfit, store.ErrNotDone)
	// ErrReadOnly is returned for what writes, if the Store was opened with [WithReadOnly]
	// or the file cannot be written. It wraps [store.ErrNotDone].
	ErrReadOnly = fmt.Errorf("sqlitestore: the file is read-only: %w", store.ErrNotDone)
	// ErrBusy is returned if another connection has held the file's lock for as long as the
	// call could wait, with the error of its context. It wraps [store.ErrNotDone].
	ErrBusy = fmt.Errorf("sqlitestore: another connection has the file's lock: %w", store.ErrNotDone)
)

// codeOf returns SQLite's extended code of an error, or 0.
func codeOf(err error) int {
	if e := (*sqlite.Error)(nil); errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

func isBusy(err error) bool {
	code := codeOf(err) & 0xff
	return code == sqlite3.SQLITE_BUSY || code == sqlite3.SQLITE_LOCKED
}

// explain wraps an error of SQLite in those that a caller may look for. done: the
// transaction may have been committed.
func explain(err error, done bool) error {
	if err == nil {
		return nil
	}
	switch code := codeOf(err); code & 0xff {
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("%w: %w", store.ErrFull, err) // it was rolled back
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	case sqlite3.SQLITE_READONLY:
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	case 0:
	default:
		err = fmt.Errorf("sqlitestore: %w", err)
	}
	if !done && !errors.Is(err, store.ErrNotDone) {
		err = fmt.Errorf("%w: %w", err, store.ErrNotDone)
	}
	return err
}
