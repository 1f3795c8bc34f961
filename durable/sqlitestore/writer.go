package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/batch"
)

type call = batch.Call[*index]

// A writer makes all changes of the file, on one goroutine and one connection.
type writer struct {
	store        *Store
	conn         *sql.Conn
	lastIndex    *index // of the latest transaction; empty if it failed
	session      *session
	logCheckedAt time.Time // when the length of the log was last checked
}

// The writer waits for one to three times lockPause before it tries to get the file's lock
// again.
const lockPause = 200 * time.Microsecond

func newWriter(s *Store, conn *sql.Conn) writer {
	x := newSession(conn)
	return writer{store: s, conn: conn, session: x, lastIndex: &index{session: x}}
}

func (w *writer) close() {
	if w.conn != nil {
		w.session.close()
		_ = w.conn.Close()
	}
}

// checkWritable returns an error if the Store is closed or only for reading, or if the
// context has ended.
func (s *Store) checkWritable(ctx context.Context) error {
	if err := s.checkOpen(ctx); err != nil {
		return err
	}
	if s.readOnly {
		return ErrReadOnly
	}
	return nil
}

// noteLock adds ErrBusy to the error of a call whose context has ended before the writer got
// the file's lock.
func (s *Store) noteLock(err error) error {
	if errors.Is(err, store.ErrNotDone) && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) && s.lockedOut.Load() {
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return err
}

// callWriter runs a call on the writer's goroutine: see batch.Queue.
func (s *Store) callWriter(ctx context.Context, c *call) error {
	if err := s.checkWritable(ctx); err != nil {
		return err
	}
	return s.noteLock(s.calls.Call(ctx, c))
}

// transact runs the calls in one transaction.
func (w *writer) transact(calls []*call) (maybeCommitted bool, err error) {
	defer func() {
		w.requestCheckpoint(sqliteCode(err)&0xff == sqlite3.SQLITE_FULL)
		err = wrapError(err, maybeCommitted)
	}()
	if err := w.lockFile(calls); err != nil {
		return false, err
	}
	ctx, ix := context.Background(), (*index)(nil)
	defer func() {
		if ix == nil {
			_, _ = w.conn.ExecContext(ctx, "ROLLBACK")
			ix = &index{session: w.session}
		}
		w.lastIndex = ix
	}()
	if calls = batch.Begin(calls); len(calls) == 0 {
		return false, nil
	}
	next, err := w.runCalls(calls)
	if err != nil {
		return false, err
	}
	if _, err := w.conn.ExecContext(ctx, "COMMIT"); err != nil {
		return true, err
	}
	ix = next
	w.store.wakeIfChanged(ix.counters.Wakes)
	return true, nil
}

// lockFile begins a transaction. It polls for the file's lock, because SQLite's own waiting
// ignores contexts and is unfair. It returns ErrBusy if no caller waits any more.
func (w *writer) lockFile(calls []*call) error {
	for {
		if err := w.store.checkFile(); err != nil {
			return err
		}
		_, err := w.conn.ExecContext(context.Background(), "BEGIN IMMEDIATE")
		w.store.lockedOut.Store(isBusyError(err))
		if !isBusyError(err) {
			return err
		}
		if !batch.Waiting(calls) {
			return ErrBusy
		}
		select {
		case <-w.store.closed:
			return store.ErrClosed
		case <-time.After(lockPause + rand.N(2*lockPause)):
		}
	}
}

// runCalls runs the calls, and writes their changes.
func (w *writer) runCalls(calls []*call) (ix *index, err error) {
	defer batch.Recover(&err)
	now := w.store.readClocks()
	if now.Wall < 0 || now.Wall > maxClockTime {
		return nil, fmt.Errorf("%w: the clock shows %v: %w", store.ErrUnfit, now.Wall.Std().UTC(), store.ErrNotDone)
	}
	for _, c := range calls {
		if c.Prepare != nil {
			c.Prepare()
			w.lastIndex = &index{session: w.session}
		}
	}
	ix = w.lastIndex.nextIndex()
	ix.now = now
	var ids, senders []string
	for _, c := range calls {
		ids = append(ids, c.TaskIDs...)
		if c.Sender != "" {
			senders = append(senders, c.Sender)
		}
	}
	ix.loadRows(ids, senders)
	for _, c := range calls {
		c.Execute(ix)
	}
	ix.writeChanges()
	return ix, nil
}

// Change carries out a command.
func (s *Store) Change(ctx context.Context, _ int, st store.Stamp, c store.Command) ([]store.Outcome, error) {
	if err := s.checkWritable(ctx); err != nil {
		return nil, err
	}
	outcomes, err := s.calls.Change(ctx, st, c)
	return outcomes, s.noteLock(err)
}

// Do carries out a worker's round.
func (s *Store) Do(ctx context.Context, _ int, st store.Stamp, r store.Round) (store.Answer, error) {
	if err := s.checkWritable(ctx); err != nil {
		return store.Answer{}, err
	}
	answer, err := s.calls.Do(ctx, st, r)
	answer.Next = min(answer.Next, time.Duration(s.sleepLimit.Load()))
	return answer, s.noteLock(err)
}
