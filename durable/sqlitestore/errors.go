package sqlitestore

import (
	"errors"
	"fmt"
	"os"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/tickless/tickless/durable/store"
)

var (
	// ErrDamaged matches, with errors.Is, every error about damaged data in the file.
	// It wraps [store.ErrDamaged].
	ErrDamaged = fmt.Errorf("sqlitestore: the file is damaged: %w", store.ErrDamaged)
	// ErrGone is returned if the file was removed or replaced after the Store was opened.
	// It wraps [store.ErrUnfit] and [store.ErrNotDone].
	ErrGone = fmt.Errorf("sqlitestore: the file was removed or replaced: %w: %w", store.ErrUnfit, store.ErrNotDone)
	// ErrReadOnly is returned by calls that write, if the Store was opened with
	// [WithReadOnly] or the file is not writable. It wraps [store.ErrNotDone].
	ErrReadOnly = fmt.Errorf("sqlitestore: the file is read-only: %w", store.ErrNotDone)
	// ErrBusy is returned, together with the context's error, if another connection holds
	// the file's lock until the context ends. It wraps [store.ErrNotDone].
	ErrBusy = fmt.Errorf("sqlitestore: another connection has the file's lock: %w", store.ErrNotDone)
)

// sqliteCode returns SQLite's extended code of an error, or 0.
func sqliteCode(err error) int {
	if e := (*sqlite.Error)(nil); errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

// openError returns the error of Open: the file's name and, if the system refuses the file or
// its folder, why. SQLite only says that it cannot open or write the file.
func (s *Store) openError(err error) error {
	var reason error
	switch sqliteCode(err) & 0xff {
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY:
		info, statErr := os.Stat(s.path)
		switch {
		case statErr != nil:
			reason = errors.Unwrap(statErr) // without the name
		case !info.Mode().IsRegular():
			reason = errors.New("it is a folder, or no ordinary file")
		default:
			reason = accessError(s.path, s.readOnly)
		}
	}
	if reason != nil {
		err = fmt.Errorf("%w: %w", reason, err)
	}
	return fmt.Errorf("sqlitestore: %s: %w", s.path, err)
}

func isBusyError(err error) bool {
	code := sqliteCode(err) & 0xff
	return code == sqlite3.SQLITE_BUSY || code == sqlite3.SQLITE_LOCKED
}

// wrapError wraps an error of SQLite in errors of this package and of package store.
// maybeCommitted is true if the transaction may have been committed.
func wrapError(err error, maybeCommitted bool) error {
	if err == nil {
		return nil
	}
	switch code := sqliteCode(err); code & 0xff {
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("%w: %w", store.ErrFull, err) // SQLite has rolled back the transaction
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	case sqlite3.SQLITE_READONLY:
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	case 0:
	default:
		err = fmt.Errorf("sqlitestore: %w", err)
	}
	if !maybeCommitted && !errors.Is(err, store.ErrNotDone) {
		err = fmt.Errorf("%w: %w", err, store.ErrNotDone)
	}
	return err
}
