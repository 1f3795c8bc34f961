package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/machine"
)

// A reader is a connection that reads.
type reader struct {
	conn *sql.Conn
	*session
}

func (r *reader) close() {
	if r != nil {
		r.session.close()
		_ = r.conn.Close()
	}
}

// retry calls f again while the file is locked, until the context ends.
func retry(ctx context.Context, f func() error) error {
	for {
		err := f()
		if !isBusy(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrBusy, ctx.Err())
		case <-time.After(pause):
		}
	}
}

// view calls f with a reader, in a transaction, so that it sees the file as it is at one
// moment.
func (s *Store) view(ctx context.Context, f func(x *session)) error {
	if err := s.mayBegin(ctx); err != nil {
		return err
	}
	var r *reader
	select {
	case r = <-s.readers:
	case <-ctx.Done():
		return store.Ended(ctx)
	}
	defer func() { s.readers <- r }()
	if r == nil {
		conn, err := s.read.Conn(ctx)
		if err != nil {
			return explain(err, false)
		}
		r = &reader{conn, newSession(conn)}
	}
	r.ctx = ctx
	err := retry(ctx, func() (err error) {
		defer func() { _, _ = r.conn.ExecContext(context.Background(), "ROLLBACK") }()
		defer recoverInto(&err)
		_, err = r.conn.ExecContext(ctx, "BEGIN")
		must(err)
		f(r.session)
		return nil
	})
	if ctx.Err() != nil && err != nil {
		return store.Ended(ctx)
	}
	if errors.Is(err, store.ErrNotFound) {
		return err
	}
	return explain(err, false)
}

// Get returns what is known of a task.
func (s *Store) Get(ctx context.Context, _ int, id string) (store.Entry, error) {
	var t machine.Task
	err := s.view(ctx, func(x *session) {
		err := scan(x.stmt(findTask).QueryRowContext(ctx, id), &t)
		if errors.Is(err, sql.ErrNoRows) {
			err = store.ErrNotFound
		}
		must(err)
	})
	if err != nil {
		return store.Entry{}, err
	}
	return t.Entry, nil
}

// few is how many tasks with a prefix are sorted rather than looked for in the order of the
// list.
const few = 5000

// List returns a page. Its transaction ends with it, so that a long list does not keep the
// log from beginning again. A page costs what it holds, and what it leaves out of the
// order that does not meet the filter; with a prefix that few tasks have, these. Tasks whose
// rows are damaged are left out.
func (s *Store) List(ctx context.Context, _ int, f store.Filter, c store.Cursor, limit int) (p store.Page, err error) {
	if err := store.CheckList(&f, limit); err != nil {
		return p, err
	}
	where, args := []string{"(state, at, id) > (?, ?, ?)"}, []any{0, 0, ""}
	if c != "" {
		var state store.State
		var at store.Time
		part := strings.SplitN(string(c), " ", 3)
		if len(part) < 3 {
			return p, fmt.Errorf("%w: %q is no cursor of this store", store.ErrInvalid, c)
		}
		if _, err := fmt.Sscan(part[0]+" "+part[1], &state, &at); err != nil {
			return p, fmt.Errorf("%w: %q is no cursor of this store", store.ErrInvalid, c)
		}
		args = []any{int64(state), int64(at), part[2]}
	}
	and := func(condition string, arg any) { where, args = append(where, condition), append(args, arg) }
	if f.State != 0 {
		and("state = ?", int64(f.State))
	}
	if f.Handler != "" {
		and("handler = ?", f.Handler)
	}
	if f.From != 0 {
		and("at >= ?", int64(f.From))
	}
	if f.To != 0 {
		and("at < ?", int64(f.To))
	}
	order := "state, at, id"
	err = s.view(ctx, func(x *session) {
		p = store.Page{}
		if f.Prefix != "" {
			end := after(f.Prefix)
			var n int
			x.row(`SELECT count(*) FROM (SELECT 1 FROM tickless_tasks WHERE id >= ? AND (? = '' OR id < ?) LIMIT ?)`, []any{f.Prefix, end, end, few}, &n)
			if n < few {
				order = "+state, +at, +id"
			}
			and("id >= ?", f.Prefix)
			if end != "" {
				and("id < ?", end)
			}
		}
		query := `SELECT ` + columns + ` FROM tickless_tasks WHERE ` + strings.Join(where, " AND ") + ` ORDER BY ` + order + ` LIMIT ?`
		n := 0
		x.rows(query, append(args, limit+1), func(rows *sql.Rows) {
			var t machine.Task
			if err := scan(rows, &t); !errors.Is(err, ErrDamaged) {
				must(err)
				if n < limit {
					p.Entries = append(p.Entries, t.Entry)
				}
			}
			if n++; n == limit {
				p.Next = store.Cursor(fmt.Sprintf("%d %d %s", t.State, t.At, t.ID))
			}
		})
		if n <= limit {
			p.Next = ""
		}
	})
	return p, err
}

// after returns the first string behind all that have the prefix; empty if there is none.
func after(prefix string) string {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			return prefix[:i] + string([]byte{prefix[i] + 1})
		}
	}
	return ""
}

// Stats returns the numbers. O(n) in the tasks that are overdue.
func (s *Store) Stats(ctx context.Context, _ int) (st store.Stats, err error) {
	err = s.view(ctx, func(x *session) { st = machine.Stats(newIndex(x), s.moment().Wall) })
	return st, err
}

// Forecast counts. O(n) in the tasks that are due before the last moment.
func (s *Store) Forecast(ctx context.Context, _ int, moments []store.Time) ([]int64, error) {
	if err := store.CheckForecast(moments); err != nil {
		return nil, err
	}
	out := make([]int64, len(moments))
	err := s.view(ctx, func(x *session) {
		before, sum := store.Time(0), int64(0)
		for i, at := range moments {
			var n int64
			x.row(countBefore, []any{int64(before), int64(at)}, &n)
			sum += n
			out[i], before = sum, at
		}
	})
	return out, err
}

// Check looks whether the file is there and can be read, and says what may lose tasks. See
// Verify for what is in it.
func (s *Store) Check(ctx context.Context) (store.Health, error) {
	h := store.Health{Store: "SQLite in " + s.path}
	if s.interval > 0 {
		h.Warnings = append(h.Warnings, fmt.Sprintf("the disk is synced once in %v: a power cut may lose what was acknowledged since", s.interval))
	}
	if n := s.WAL(); n > largeWAL {
		h.Warnings = append(h.Warnings, fmt.Sprintf("the log has %d MB: somebody has read the file for long", n>>20))
	}
	err := s.view(ctx, func(x *session) { newIndex(x) })
	if err == nil {
		err = s.isThere()
	}
	return h, err
}

// count returns the numbers, and how many tasks there are in each state.
func count(x *session) (n machine.Numbers, there [store.Dead + 1]int64) {
	for state := store.Pending; state <= store.Dead; state++ {
		x.row(countStates, []any{int64(state)}, &there[state])
	}
	return newIndex(x).numbers, there
}

// Repair counts the tasks, and puts the numbers right if something else has changed them. O(n).
func (s *Store) Repair(ctx context.Context, _ int) (r store.Repair, err error) {
	var n machine.Numbers
	var there [store.Dead + 1]int64
	err = s.view(ctx, func(x *session) { n, there = count(x) })
	pending, running, dead := there[store.Pending]-n.Pending, there[store.Running]-n.Running, there[store.Dead]-n.Dead
	r.Looked = there[store.Pending] + there[store.Running] + there[store.Dead]
	if err != nil || pending == 0 && running == 0 && dead == 0 {
		return r, err
	}
	return r, s.call(ctx, func(ix *index, _ machine.Moment) error {
		ix.numbers.Pending += pending
		ix.numbers.Running += running
		ix.numbers.Dead += dead
		return nil
	})
}

// Verify looks at all that is in the file: SQLite's own integrity check, the checksum of
// each row, and that the tasks and the numbers are as the machine leaves them. It returns
// how many tasks it has looked at, and an error that wraps [ErrDamaged] for the first fault. It
// takes minutes for millions of tasks, and the log grows meanwhile if others write.
func (s *Store) Verify(ctx context.Context) (looked int64, err error) {
	damaged := func(format string, args ...any) {
		must(fmt.Errorf("%w: "+format, append([]any{ErrDamaged}, args...)...))
	}
	err = s.view(ctx, func(x *session) {
		looked = 0
		var said string
		if x.row(`PRAGMA integrity_check(1)`, nil, &said); said != "ok" {
			damaged("%s", said)
		}
		n, there := count(x)
		x.rows(`SELECT `+columns+` FROM tickless_tasks`, nil, func(rows *sql.Rows) {
			var t machine.Task
			must(scan(rows, &t))
			if err := t.Check(&n); err != nil {
				damaged("task %.80q: %v", t.ID, err)
			}
			looked++
		})
		if want := [...]int64{0, n.Pending, n.Running, n.Dead}; want != there || looked != n.Pending+n.Running+n.Dead {
			damaged("there are %v tasks that are pending, running and dead, and the numbers are %v: Repair puts them right", there[1:], want[1:])
		}
	})
	return looked, err
}
