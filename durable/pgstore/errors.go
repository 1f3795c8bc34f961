package pgstore

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tickless/tickless/durable/store"
)

// ErrReadOnly is returned by calls that write, if the server is a standby or its
// transactions are read-only. It wraps [store.ErrNotDone].
var ErrReadOnly = fmt.Errorf("pgstore: the server is read-only: %w", store.ErrNotDone)

// sqlState returns the server's code of an error and whether the server has ended the
// connection, or an empty code.
func sqlState(err error) (code string, fatal bool) {
	if e := (*pgconn.PgError)(nil); errors.As(err, &e) {
		return e.Code, e.SeverityUnlocalized == "FATAL" || e.SeverityUnlocalized == "PANIC"
	}
	return "", false
}

// wrapError wraps an error of the server in errors of this package and of package store.
// maybeCommitted is true if the transaction may have been committed.
func wrapError(err error, maybeCommitted bool) error {
	if err == nil || errors.Is(err, store.ErrNotDone) {
		return err
	}
	switch code, _ := sqlState(err); {
	case maybeCommitted:
		return fmt.Errorf("pgstore: %w", err)
	case code == "53100": // disk full
		return fmt.Errorf("%w: %w", store.ErrFull, err)
	case code == "25006": // read-only transaction
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	case code == "42P01" || code == "3F000" || code == "42703": // no such table, schema or column
		err = fmt.Errorf("%w: %w", store.ErrSchema, err)
	case code == "42501": // insufficient privilege
		err = fmt.Errorf("%w: %w", store.ErrUnfit, err)
	}
	return fmt.Errorf("pgstore: %w: %w", err, store.ErrNotDone)
}

// isTransient reports whether a transaction that was rolled back with err may succeed if
// it is repeated at once: a serialization failure, a deadlock, a lock that was not
// available in time, or a connection that has ended.
func isTransient(err error) bool {
	code, fatal := sqlState(err)
	switch code {
	case "40001", "40P01", "55P03":
		return true
	case "53300", "53400", "57P03", "28P01", "28000", "3D000": // too many connections, starting up, no access
		return false
	}
	return fatal || code == "" && !errors.Is(err, store.ErrUnfit)
}

// isDataError reports whether err is the fault of one call's data.
func isDataError(err error) bool {
	code, _ := sqlState(err)
	return len(code) == 5 && (code[:2] == "22" || code[:2] == "23" || code[:2] == "54")
}
