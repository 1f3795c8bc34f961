package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/machine"
)

// A writer makes all changes of the file, on one goroutine and one connection. It puts
// all waiting calls into one transaction.
type writer struct {
	store        *Store
	conn         *sql.Conn
	lastIndex    *index // of the latest transaction; empty if it failed
	session      *session
	calls        chan *queuedCall
	prevCalls    int       // calls in the previous transaction
	logCheckedAt time.Time // when the length of the log was last checked
}

const (
	// maxCalls is the maximum number of waiting calls. maxGroup is the maximum number of
	// calls in a transaction.
	maxCalls = 8192
	maxGroup = 512
	// The writer waits for one to three times lockPause before it tries to get the file's
	// lock again.
	lockPause = 200 * time.Microsecond
	// gatherTime is the longest time that the writer waits for more calls.
	gatherTime = 200 * time.Microsecond
)

// A queuedCall is a function that waits to run in a transaction, on the writer's
// goroutine.
type queuedCall struct {
	keys rowKeys
	// repair, if not nil, repairs the tables before the call.
	repair func(x *session, at machine.Moment)
	do     func(ix *index, at machine.Moment) error
	state  atomic.Int32 // callWaits, callBegun or callDropped
	err    error
	done   chan struct{}
}

// rowKeys are the keys of the rows that a call needs. The writer reads the rows of all
// calls together.
type rowKeys struct {
	senderName string
	taskIDs    []string
}

// The states of a call. If its context ends, a waiting call is dropped, but a begun call
// continues.
const (
	callWaits int32 = iota
	callBegun
	callDropped
)

func newWriter(s *Store, conn *sql.Conn) writer {
	x := newSession(conn)
	return writer{store: s, conn: conn, session: x, lastIndex: &index{session: x}, calls: make(chan *queuedCall, maxCalls)}
}

func (w *writer) close() {
	if w.conn != nil {
		w.session.close()
		_ = w.conn.Close()
	}
}

// callWriter runs do on the writer's goroutine. It returns after the commit, or when the
// context ends. After an error, do may still be running: what it writes may be read only if
// callWriter returns nil.
func (s *Store) callWriter(ctx context.Context, keys rowKeys, do func(ix *index, at machine.Moment) error) error {
	return s.queueCall(ctx, &queuedCall{keys: keys, do: do, done: make(chan struct{})})
}

func (s *Store) queueCall(ctx context.Context, c *queuedCall) error {
	if err := s.checkOpen(ctx); err != nil {
		return err
	}
	if s.readOnly {
		return ErrReadOnly
	}
	select {
	case s.writer.calls <- c:
	default:
		return store.ErrBusy
	}
	select {
	case <-c.done:
		return c.err
	case <-s.closed:
	case <-ctx.Done():
		switch {
		case !c.state.CompareAndSwap(callWaits, callDropped):
		case s.lockedOut.Load():
			return fmt.Errorf("%w: %w", ErrBusy, ctx.Err())
		default:
			return store.Ended(ctx)
		}
		return fmt.Errorf("sqlitestore: %w", ctx.Err())
	}
	if c.state.CompareAndSwap(callWaits, callDropped) {
		return store.ErrClosed
	}
	<-c.done
	return c.err
}

func (w *writer) runLoop() {
	for {
		select {
		case <-w.store.closed:
			return
		case c := <-w.calls:
			w.runGroup(w.gatherCalls(c))
		}
	}
}

// gatherCalls returns the waiting calls. To save a sync, it first waits up to gatherTime
// for as many calls as the previous transaction had.
func (w *writer) gatherCalls(first *queuedCall) []*queuedCall {
	for begin := time.Now(); len(w.calls)+1 < w.prevCalls && time.Since(begin) < gatherTime; {
		runtime.Gosched()
	}
	group := []*queuedCall{first}
	for n := len(w.calls); n > 0 && len(group) < maxGroup; n-- {
		group = append(group, <-w.calls)
	}
	w.prevCalls = len(group)
	return group
}

// runGroup runs the calls in one transaction. If it fails or panics, each call gets its
// own transaction, so that only the faulty call fails.
func (w *writer) runGroup(group []*queuedCall) {
	group, err := w.beginTransaction(group)
	if len(group) == 0 {
		return
	}
	maybeCommitted := false
	if err == nil {
		maybeCommitted, err = w.runTransaction(group)
	}
	if err != nil && !maybeCommitted && len(group) > 1 && (sqliteCode(err) != 0 || errors.Is(err, errPanic)) {
		for _, c := range group {
			c.state.Store(callWaits)
			w.runGroup([]*queuedCall{c})
		}
		return
	}
	for _, c := range group {
		if err != nil {
			c.err = wrapError(err, maybeCommitted)
		}
		close(c.done)
	}
	w.requestCheckpoint(sqliteCode(err)&0xff == sqlite3.SQLITE_FULL)
}

// beginTransaction starts a transaction, and returns the calls that still wait for it. It
// polls for the file's lock, because SQLite's own waiting ignores contexts and is unfair.
func (w *writer) beginTransaction(group []*queuedCall) ([]*queuedCall, error) {
	for {
		if err := w.store.checkFile(); err != nil {
			return markCallsBegun(group), err
		}
		_, err := w.conn.ExecContext(context.Background(), "BEGIN IMMEDIATE")
		w.store.lockedOut.Store(isBusyError(err))
		if !isBusyError(err) {
			if group = markCallsBegun(group); err == nil && len(group) == 0 {
				_, err = w.conn.ExecContext(context.Background(), "ROLLBACK")
			}
			return group, err
		}
		if !slices.ContainsFunc(group, func(c *queuedCall) bool { return c.state.Load() == callWaits }) {
			return nil, nil
		}
		select {
		case <-w.store.closed:
			return markCallsBegun(group), store.ErrClosed
		case <-time.After(lockPause + rand.N(2*lockPause)):
		}
	}
}

// markCallsBegun marks the waiting calls as begun, and returns them.
func markCallsBegun(group []*queuedCall) (marked []*queuedCall) {
	for _, c := range group {
		if c.state.CompareAndSwap(callWaits, callBegun) {
			marked = append(marked, c)
		}
	}
	return marked
}

// runTransaction runs the calls and commits. If maybeCommitted is true, the transaction
// may have been committed despite an error.
func (w *writer) runTransaction(group []*queuedCall) (maybeCommitted bool, err error) {
	ctx := context.Background()
	ix, err := w.runCalls(group)
	if err == nil {
		maybeCommitted = true
		_, err = w.conn.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		_, _ = w.conn.ExecContext(ctx, "ROLLBACK")
		w.lastIndex = &index{session: w.session}
		return maybeCommitted, err
	}
	w.lastIndex = ix
	w.store.wakeIfChanged(ix.counters.Wakes)
	return true, nil
}

// errPanic is the error for a panic in a transaction, which is rolled back.
var errPanic = errors.New("panic in a transaction")

func (w *writer) runCalls(group []*queuedCall) (ix *index, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: %v", errPanic, v)
			w.store.log.Error("sqlitestore: panic in a transaction, which is rolled back", "panic", v, "stack", string(debug.Stack()))
		}
	}()
	defer recoverSessionError(&err)
	at := w.store.readClocks()
	if at.Wall < 0 || at.Wall > maxClockTime {
		return nil, fmt.Errorf("%w: the clock shows %v: %w", store.ErrUnfit, at.Wall.Std().UTC(), store.ErrNotDone)
	}
	for _, c := range group {
		if c.repair != nil {
			c.repair(w.session, at)
			w.lastIndex = &index{session: w.session}
		}
	}
	ix = w.lastIndex.nextIndex()
	var ids, senders []string
	for _, c := range group {
		ids = append(ids, c.keys.taskIDs...)
		if c.keys.senderName != "" {
			senders = append(senders, c.keys.senderName)
		}
	}
	ix.loadRows(ids, senders)
	for _, c := range group {
		c.err = c.do(ix, at)
	}
	ix.writeChanges()
	return ix, nil
}

// Change carries out a command.
func (s *Store) Change(ctx context.Context, _ int, st store.Stamp, c store.Command) ([]store.Outcome, error) {
	if err := c.Check(&st); err != nil {
		return nil, err
	}
	c.Items = machine.CopyItems(c.Items) // the index may keep the items
	keys := rowKeys{senderName: st.Sender}
	for i := range c.Items {
		keys.taskIDs = append(keys.taskIDs, c.Items[i].ID)
	}
	var outcomes []store.Outcome // no named result: a return after an error would write it
	err := s.callWriter(ctx, keys, func(ix *index, at machine.Moment) (err error) {
		if err := ix.checkRows(keys, c.Op != store.Schedule); err != nil {
			return err
		}
		outcomes, err = machine.Change(ix, at, &st, &c)
		return err
	})
	if err != nil {
		return nil, err
	}
	return outcomes, nil
}

// Do carries out a worker's round.
func (s *Store) Do(ctx context.Context, _ int, st store.Stamp, r store.Round) (store.Answer, error) {
	if err := r.Check(&st); err != nil {
		return store.Answer{}, err
	}
	keys := rowKeys{senderName: st.Sender}
	for i := range r.Reports {
		keys.taskIDs = append(keys.taskIDs, r.Reports[i].ID)
	}
	for i := range r.Extend {
		keys.taskIDs = append(keys.taskIDs, r.Extend[i].ID)
	}
	var answer store.Answer // no named result, as in Change
	err := s.callWriter(ctx, keys, func(ix *index, at machine.Moment) (err error) {
		if err := ix.checkRows(keys, false); err != nil {
			return err
		}
		answer, err = machine.Do(ix, at, &st, &r)
		return err
	})
	if err != nil {
		return store.Answer{}, err
	}
	answer.Next = min(answer.Next, time.Duration(s.sleepLimit.Load()))
	return answer, nil
}
