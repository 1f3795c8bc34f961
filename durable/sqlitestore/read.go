package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/machine"
)

// retry calls f until the file is not locked or the context ends.
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

// view calls f in a read transaction, so that f sees a consistent state of the file. If
// another connection interferes, it calls f again.
func (s *Store) view(ctx context.Context, f func(x *session)) error {
	if err := s.mayRead(ctx); err != nil {
		return err
	}
	err := retry(ctx, func() (err error) {
		tx, err := s.read.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		defer recoverInto(&err)
		x := newSession(tx)
		x.ctx = ctx
		f(x)
		return nil
	})
	if err != nil && ctx.Err() != nil && !errors.Is(err, ErrBusy) {
		return store.Ended(ctx)
	}
	return explain(err, false)
}

// Get returns a task's entry.
func (s *Store) Get(ctx context.Context, _ int, id string) (store.Entry, error) {
	var found *task
	err := s.view(ctx, func(x *session) {
		found = nil
		x.some(findSome, 1, []any{id}, func(rows *sql.Rows) { found = scanTask(rows) })
	})
	switch {
	case err != nil:
		return store.Entry{}, err
	case found == nil:
		return store.Entry{}, store.ErrNotFound
	}
	return found.Entry, explain(found.err, false)
}

// Stats returns the numbers. O(n) in the overdue tasks.
func (s *Store) Stats(ctx context.Context, _ int) (st store.Stats, err error) {
	err = s.view(ctx, func(x *session) { st = machine.Stats(newIndex(x), s.moment().Wall) })
	return st, err
}

// Check reports whether the file exists and is readable, and warns of settings that may
// lose tasks. Verify checks the contents.
func (s *Store) Check(ctx context.Context) (store.Health, error) {
	h := store.Health{Store: "SQLite in " + s.path}
	if s.interval > 0 {
		h.Warnings = append(h.Warnings, fmt.Sprintf("the file is synced only every %v: a power failure may lose the commands since the last sync", s.interval))
	}
	if n := s.WAL(); n > largeWAL {
		h.Warnings = append(h.Warnings, fmt.Sprintf("the write-ahead log has %d MB: a reader has been open for long", n>>20))
	}
	return h, s.view(ctx, func(x *session) { newIndex(x) })
}

// count returns the numbers, and the actual number of tasks in each state.
func count(x *session) (n machine.Numbers, there [store.Past + 1]int64) {
	x.row(countTasks, nil, &there[store.Pending], &there[store.Running], &there[store.Dead], &there[store.Past])
	return newIndex(x).numbers, there
}

// Repair counts the tasks, and corrects the numbers, and the use of the limits, if another
// program has changed the table. O(n).
func (s *Store) Repair(ctx context.Context, _ int) (r store.Repair, err error) {
	var n machine.Numbers
	var there [store.Past + 1]int64
	var wrong bool
	err = s.view(ctx, func(x *session) {
		n, there = count(x)
		wrong = machine.Recount(newIndex(x))
	})
	pending, running, dead, past := there[store.Pending]-n.Pending, there[store.Running]-n.Running, there[store.Dead]-n.Dead, there[store.Past]-n.Past
	r.Looked = there[store.Pending] + there[store.Running] + there[store.Dead] + there[store.Past]
	if err != nil || pending == 0 && running == 0 && dead == 0 && past == 0 && !wrong {
		return r, err
	}
	return r, s.call(ctx, reads{}, func(ix *index, _ machine.Moment) error {
		ix.numbers.Pending += pending
		ix.numbers.Running += running
		ix.numbers.Dead += dead
		ix.numbers.Past += past
		machine.Recount(ix)
		return nil
	})
}

// Verify checks the whole file: SQLite's own integrity check, the checksum of each row,
// and that the tasks and the numbers are consistent. It returns the number of checked
// tasks, and for the first error found an error that wraps [ErrDamaged]. It takes minutes
// for millions of tasks. If others write during that time, the log grows.
func (s *Store) Verify(ctx context.Context) (looked int64, err error) {
	err = s.view(ctx, func(x *session) {
		looked = 0
		var said string
		if x.row(`PRAGMA integrity_check(1)`, nil, &said); said != "ok" {
			must(fmt.Errorf("%w: %s", ErrDamaged, said))
		}
		n, there := count(x)
		x.rows(`SELECT `+columns+` FROM tickless_tasks`, nil, func(rows *sql.Rows) {
			t := scanTask(rows)
			if must(t.err); t.Check(&n) != nil {
				must(fmt.Errorf("%w: task %.80q: %w", ErrDamaged, t.ID, t.Check(&n)))
			}
			looked++
		})
		if want := [...]int64{0, n.Pending, n.Running, n.Dead, n.Past}; want != there || looked != n.Pending+n.Running+n.Dead+n.Past {
			must(fmt.Errorf("%w: the file contains %v pending, running, dead and past tasks, but its counters say %v: Repair corrects them", ErrDamaged, there[1:], want[1:]))
		}
	})
	return looked, err
}
