package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"runtime"
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
	s       *Store
	conn    *sql.Conn
	last    *index // the index of the latest committed transaction, or an empty one
	session *session
	calls   chan *call
	count   int       // calls in the previous transaction
	looked  time.Time // when the length of the log was last checked
}

const (
	// maxCalls is the maximum number of waiting calls, and maxGroup that of calls in a
	// transaction.
	maxCalls = 8192
	maxGroup = 512
	// pause is the minimum time before the writer tries to get the lock again. The
	// maximum is three times that.
	pause = 200 * time.Microsecond
	// patience is how long the writer waits for more calls.
	patience = 200 * time.Microsecond
)

// A call waits for the writer, which runs it on its own goroutine.
type call struct {
	reads reads
	do    func(ix *index, at machine.Moment) error
	state atomic.Int32
	err   error
	done  chan struct{}
}

// reads names what a call will read, so that the writer can read it together with that
// of other calls.
type reads struct {
	sender string
	ids    []string
}

// The states of a call. The end of its context ends a waiting call, but not one that
// has begun.
const (
	waits int32 = iota
	begun
	dropped
)

func newWriter(s *Store, conn *sql.Conn) writer {
	x := newSession(conn)
	return writer{s: s, conn: conn, session: x, last: &index{session: x}, calls: make(chan *call, maxCalls)}
}

func (w *writer) close() {
	if w.conn != nil {
		w.session.close()
		_ = w.conn.Close()
	}
}

// call runs do on the writer's goroutine. It returns when the transaction was
// committed, or when the context ends.
func (s *Store) call(ctx context.Context, r reads, do func(ix *index, at machine.Moment) error) error {
	if err := s.mayBegin(ctx); err != nil {
		return err
	}
	if s.readOnly {
		return ErrReadOnly
	}
	c := &call{reads: r, do: do, done: make(chan struct{})}
	select {
	case s.writer.calls <- c:
	default:
		return store.ErrBusy
	}
	select {
	case <-c.done:
		return c.err
	case <-s.over:
	case <-ctx.Done():
		switch {
		case !c.state.CompareAndSwap(waits, dropped):
		case s.held.Load():
			return fmt.Errorf("%w: %w", ErrBusy, ctx.Err())
		default:
			return store.Ended(ctx)
		}
		return fmt.Errorf("sqlitestore: %w", ctx.Err())
	}
	if c.state.CompareAndSwap(waits, dropped) {
		return store.ErrClosed
	}
	<-c.done
	return c.err
}

func (w *writer) run() {
	for {
		select {
		case <-w.s.over:
			return
		case c := <-w.calls:
			w.carryOut(w.gather(c))
		}
	}
}

// gather returns the waiting calls. The callers that the previous transaction has
// answered are about to send their next calls. Waiting for these briefly is cheaper
// than another sync.
func (w *writer) gather(first *call) []*call {
	for begin := time.Now(); len(w.calls)+1 < w.count && time.Since(begin) < patience; {
		runtime.Gosched()
	}
	group := []*call{first}
	for n := len(w.calls); n > 0 && len(group) < maxGroup; n-- {
		group = append(group, <-w.calls)
	}
	w.count = len(group)
	return group
}

// carryOut runs the calls in one transaction. If that fails, it runs each in a
// transaction of its own, so that a call that cannot succeed fails alone.
func (w *writer) carryOut(group []*call) {
	group, err := w.begin(group)
	if len(group) == 0 {
		return
	}
	done := false
	if err == nil {
		done, err = w.transaction(group)
	}
	if err != nil && !done && len(group) > 1 && codeOf(err) != 0 {
		for _, c := range group {
			c.state.Store(waits)
			w.carryOut([]*call{c})
		}
		return
	}
	for _, c := range group {
		if err != nil {
			c.err = explain(err, done)
		}
		close(c.done)
	}
	w.mayCheckpoint(codeOf(err)&0xff == sqlite3.SQLITE_FULL)
}

// begin starts a transaction, and returns the calls whose contexts have not ended. It
// polls for the lock itself: SQLite's own waiting is unfair to the later one of two
// processes, and does not end with a context.
func (w *writer) begin(group []*call) ([]*call, error) {
	for {
		if err := w.s.isThere(); err != nil {
			return take(group), err
		}
		_, err := w.conn.ExecContext(context.Background(), "BEGIN IMMEDIATE")
		w.s.held.Store(isBusy(err))
		if !isBusy(err) {
			if group = take(group); err == nil && len(group) == 0 {
				_, err = w.conn.ExecContext(context.Background(), "ROLLBACK")
			}
			return group, err
		}
		if !slices.ContainsFunc(group, func(c *call) bool { return c.state.Load() == waits }) {
			return nil, nil
		}
		select {
		case <-w.s.over:
			return take(group), store.ErrClosed
		case <-time.After(pause + rand.N(2*pause)):
		}
	}
}

// take marks the calls that still wait as begun, and returns them.
func take(group []*call) (some []*call) {
	for _, c := range group {
		if c.state.CompareAndSwap(waits, begun) {
			some = append(some, c)
		}
	}
	return some
}

// transaction runs calls and commits. done says that the transaction may have been
// committed despite an error.
func (w *writer) transaction(group []*call) (done bool, err error) {
	ctx := context.Background()
	ix, err := w.attempt(group)
	if err == nil {
		done = true
		_, err = w.conn.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		_, _ = w.conn.ExecContext(ctx, "ROLLBACK")
		w.last = &index{session: w.session}
		return done, err
	}
	w.last = ix
	w.s.saw(ix.numbers.Wakes)
	return true, nil
}

func (w *writer) attempt(group []*call) (ix *index, err error) {
	defer recoverInto(&err)
	at := w.s.moment()
	if at.Wall < 0 || at.Wall > lastTime {
		return nil, fmt.Errorf("%w: the clock shows %v: %w", store.ErrUnfit, at.Wall.Std().UTC(), store.ErrNotDone)
	}
	ix = w.last.after()
	var ids, senders []string
	for _, c := range group {
		ids = append(ids, c.reads.ids...)
		if c.reads.sender != "" {
			senders = append(senders, c.reads.sender)
		}
	}
	ix.load(ids, senders)
	for _, c := range group {
		c.err = c.do(ix, at)
	}
	ix.finish()
	return ix, nil
}

// Change carries out a command.
func (s *Store) Change(ctx context.Context, _ int, st store.Stamp, c store.Command) (out []store.Outcome, err error) {
	if err := c.Check(&st); err != nil {
		return nil, err
	}
	c.Items = machine.CopyItems(c.Items) // the index may remember them
	read := reads{sender: st.Sender}
	for i := range c.Items {
		read.ids = append(read.ids, c.Items[i].ID)
	}
	err = s.call(ctx, read, func(ix *index, at machine.Moment) (err error) {
		out, err = machine.Change(ix, at, &st, &c)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Do carries out a round.
func (s *Store) Do(ctx context.Context, _ int, st store.Stamp, r store.Round) (a store.Answer, err error) {
	if err := r.Check(&st); err != nil {
		return a, err
	}
	read := reads{sender: st.Sender}
	for i := range r.Reports {
		read.ids = append(read.ids, r.Reports[i].ID)
	}
	for i := range r.Extend {
		read.ids = append(read.ids, r.Extend[i].ID)
	}
	err = s.call(ctx, read, func(ix *index, at machine.Moment) (err error) {
		a, err = machine.Do(ix, at, &st, &r)
		return err
	})
	if err != nil {
		return store.Answer{}, err
	}
	a.Next = min(a.Next, time.Duration(s.longest.Load()))
	return a, nil
}
