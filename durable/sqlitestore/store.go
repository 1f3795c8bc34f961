package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/batch"
	"github.com/tickless/tickless/durable/store/waiters"
)

// A Store keeps tasks in a file. Make one with [Open].
type Store struct {
	config
	path     string
	fileInfo os.FileInfo // the file when it was opened
	walInfo  os.FileInfo // the file's log; nil if there was none
	steadyClock
	// sleepLimit is the longest time that a worker sleeps. There is no limit once the
	// system reports changes of the wall clock.
	sleepLimit atomic.Int64

	writeDB   *sql.DB      // the writer's connection
	readDB    *sql.DB      // the readers' connections
	readers   chan *reader // the free readers; nil for one whose connection is not open
	serviceDB *sql.DB      // for checkpoints and for watching commits of other processes
	writer    writer
	calls     *batch.Queue[*index]

	waiters            waiters.Waiters
	lastWakes          atomic.Int64 // value of the counter Numbers.Wakes when the waiters were last woken
	startWatchOnce     sync.Once
	checkpointRequests chan struct{} // has an element if a checkpoint is due
	diskFull           atomic.Bool   // the disk was full: the next checkpoint resets even a short log
	lockedOut          atomic.Bool   // another connection has the lock that the writer needs
	closed             chan struct{}
	goroutines         sync.WaitGroup
}

var _ store.Store = (*Store)(nil)

// maxReaders is the maximum number of concurrent readers.
const maxReaders = 3

// The sizes of SQLite's caches in kilobytes. Each connection has its own cache. A
// writer with 16 MB and readers with 4 gained nothing, for 40,000 tasks or beside a million.
const (
	writeCache   = 4 << 10
	readCache    = 2 << 10
	serviceCache = 512
)

// openTimeout is how long Open waits for the file's lock.
const openTimeout = 10 * time.Second

// Open opens the file, or creates it in an existing folder, with mode 0600. SQLite also
// writes files beside it that end in -wal and -shm, with the file's mode.
//
// Open upgrades the tables of the previous version of this package. Programs with the
// previous version that have the file open then get [store.ErrSchema], and change nothing.
//
// The error wraps [ErrDamaged] if the file is not an SQLite file. It wraps
// [store.ErrSchema] if the tables have another version, or belong to another program. It
// wraps [store.ErrUnfit] for ":memory:", and [ErrReadOnly] if the file is not writable.
func Open(path string, opts ...Option) (*Store, error) {
	if path == "" || path == ":memory:" {
		return nil, fmt.Errorf("sqlitestore: %q is not a file name; for tasks in memory, use package memstore: %w", path, store.ErrUnfit)
	}
	s := &Store{config: newConfig(opts), closed: make(chan struct{}), checkpointRequests: make(chan struct{}, 1)}
	var err error
	if s.path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	if err := refuseNetworkFolder(filepath.Dir(s.path)); err != nil {
		return nil, err
	}
	s.steadyClock = newSteadyClock(s.clock)
	s.sleepLimit.Store(int64(s.maxSleep()))
	if !s.readOnly {
		// SQLite would create the file with mode 0644.
		f, err := os.OpenFile(s.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			err = f.Close()
		}
		if err != nil && !errors.Is(err, os.ErrExist) {
			return nil, fmt.Errorf("sqlitestore: %w", err)
		}
	}
	syncMode := "FULL"
	if s.syncInterval > 0 {
		syncMode = "NORMAL"
	}
	s.writeDB = s.openPool("rwc", writeCache, 1, "synchronous("+syncMode+")", "wal_autocheckpoint(0)", fmt.Sprintf("journal_size_limit(%d)", walLimit))
	s.readDB = s.openPool("rw", readCache, maxReaders, "query_only(1)")
	s.readers = make(chan *reader, maxReaders)
	for range maxReaders {
		s.readers <- nil
	}
	s.serviceDB = s.openPool("rw", serviceCache, 2, "synchronous(NORMAL)")
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	if err := retryWhileBusy(ctx, func() error { return s.connect(ctx) }); err != nil {
		return nil, errors.Join(s.openError(err), s.closeConns())
	}
	s.setOpen(true)
	s.calls = batch.New[*index](s.closed)
	s.goroutines.Go(func() {
		s.calls.Serve(s.log, s.writer.transact, func(err error) bool { return sqliteCode(err) != 0 })
	})
	s.goroutines.Go(s.runCheckpoints)
	return s, nil
}

// OpenDB opens the file of an application's database, and adds the Store's tables. It
// uses its own connections and does not close db.
//
// OpenDB panics if the driver of db is not modernc.org/sqlite: two SQLite libraries in
// one process release each other's locks.
func OpenDB(ctx context.Context, db *sql.DB, opts ...Option) (*Store, error) {
	if _, ok := db.Driver().(*sqlite.Driver); !ok {
		panic(fmt.Sprintf("sqlitestore: OpenDB: the driver must be that of modernc.org/sqlite, got %T", db.Driver()))
	}
	path, err := databasePath(ctx, db)
	if err != nil {
		return nil, err
	}
	return Open(path, opts...)
}

// databasePath returns the path of the main database's file.
func databasePath(ctx context.Context, db interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}) (path string, err error) {
	if err := db.QueryRowContext(ctx, `SELECT file FROM pragma_database_list WHERE name = 'main'`).Scan(&path); err != nil {
		return "", wrapError(err, false)
	}
	if path == "" {
		return "", fmt.Errorf("sqlitestore: the database is not in a file: %w", store.ErrUnfit)
	}
	return path, nil
}

// openPool returns a pool of connections. It does not connect yet.
func (s *Store) openPool(mode string, cache, maxConns int, pragmas ...string) *sql.DB {
	if s.readOnly {
		mode = "ro"
	}
	q := url.Values{"mode": {mode}, "_pragma": append([]string{"busy_timeout(0)", "temp_store(MEMORY)", fmt.Sprintf("cache_size(%d)", -cache)}, pragmas...)}
	u := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(s.path), RawQuery: q.Encode()}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		panic(err) // impossible: the driver is registered
	}
	db.SetMaxOpenConns(maxConns)
	db.SetMaxIdleConns(maxConns)
	return db
}

// connect opens the writer's connection, and creates the tables if they do not exist.
// After an error it may be called again.
func (s *Store) connect(ctx context.Context) error {
	conn, err := s.writeDB.Conn(ctx)
	if err != nil {
		return wrapError(err, false)
	}
	if err := s.createTables(ctx, conn); err != nil {
		_ = conn.Close()
		return wrapError(err, false)
	}
	if s.fileInfo, err = os.Stat(s.path); err != nil {
		_ = conn.Close()
		return err
	}
	s.walInfo, _ = os.Stat(s.path + "-wal")
	s.writer = newWriter(s, conn)
	return nil
}

// createTables creates the tables, or upgrades those of the version before.
func (s *Store) createTables(ctx context.Context, conn *sql.Conn) error {
	v, err := tablesVersion(ctx, conn)
	switch {
	case err != nil:
		return err
	case (s.readOnly || s.mustExist) && v == 0:
		return fmt.Errorf("%w: the file does not contain a store", store.ErrSchema)
	case s.readOnly && v != schemaVersion:
		return fmt.Errorf("%w: its tables have version %d: open the file once without WithReadOnly to upgrade it", store.ErrSchema, v)
	case s.readOnly:
		return nil
	}
	var mode string
	if err := conn.QueryRowContext(ctx, "PRAGMA journal_mode=WAL").Scan(&mode); err != nil {
		return err
	}
	if !strings.EqualFold(mode, "wal") {
		return fmt.Errorf("%w: SQLite refuses a write-ahead log; its journal mode is %q", store.ErrUnfit, mode)
	}
	if v == schemaVersion {
		// SQLite opens a file that is not writable for reading only, and BEGIN IMMEDIATE too does
		// not fail then.
		_, err := conn.ExecContext(ctx, "UPDATE tickless_numbers SET version = version WHERE FALSE")
		return err
	}
	// A large file may need longer than openTimeout for new indexes.
	return upgradeTables(context.WithoutCancel(ctx), conn)
}

// Close closes the Store: all later and waiting calls return [store.ErrClosed], and Wait
// returns. Close waits for the current transaction.
func (s *Store) Close() error {
	if !s.waiters.Close() {
		return nil
	}
	close(s.closed)
	s.goroutines.Wait()
	defer s.setOpen(false)
	return s.closeConns()
}

func (s *Store) closeConns() error {
	s.writer.close()
	s.closeReaders()
	return errors.Join(s.serviceDB.Close(), s.readDB.Close(), s.writeDB.Close())
}

// Clock returns the Store's clock, which its workers follow.
func (s *Store) Clock() clock.Clock { return s.clock }

// Shards returns 1, because a file has one writer.
func (s *Store) Shards() int { return 1 }

// Now returns the wall-clock time.
func (s *Store) Now(ctx context.Context, _ int) (store.Time, error) {
	return s.readClocks().Wall, s.checkOpen(ctx)
}

// checkReadable returns an error if the Store is closed, the context has ended or the
// file is gone.
func (s *Store) checkReadable(ctx context.Context) error {
	if err := s.checkOpen(ctx); err != nil {
		return err
	}
	return s.checkFile()
}

// checkOpen returns an error if the Store is closed or the context has ended.
func (s *Store) checkOpen(ctx context.Context) error {
	if s.waiters.Closed() {
		return store.ErrClosed
	}
	return store.Ended(ctx)
}

// checkFile returns ErrGone if the file or its log was removed or replaced since the
// Store opened it. Writes would then be lost.
func (s *Store) checkFile() error {
	now, err := os.Stat(s.path)
	if err != nil || !os.SameFile(now, s.fileInfo) {
		return ErrGone
	}
	if s.walInfo != nil {
		if now, err = os.Stat(s.path + "-wal"); err != nil || !os.SameFile(now, s.walInfo) {
			return ErrGone
		}
	}
	return nil
}
