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

// retryWhileBusy calls f again while the file is locked, until the context ends.
func retryWhileBusy(ctx context.Context, f func() error) error {
	for {
		err := f()
		if !isBusyError(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrBusy, ctx.Err())
		case <-time.After(lockPause):
		}
	}
}

// runReadTx calls f in a read transaction, so that f sees a consistent state. It calls f
// again if the file was locked.
func (s *Store) runReadTx(ctx context.Context, f func(x *session)) error {
	if err := s.checkReadable(ctx); err != nil {
		return err
	}
	err := retryWhileBusy(ctx, func() (err error) {
		tx, err := s.readDB.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		defer recoverSessionError(&err)
		x := newSession(tx)
		x.ctx = ctx
		var version int64
		x.queryRow(getSchema, nil, &version)
		must(checkSchemaVersion(version)) // another process may have upgraded the tables
		f(x)
		return nil
	})
	if err != nil && ctx.Err() != nil && !errors.Is(err, ErrBusy) {
		return store.Ended(ctx)
	}
	return wrapError(err, false)
}

// Get returns a task's entry, or store.ErrNotFound.
func (s *Store) Get(ctx context.Context, _ int, id string) (store.Entry, error) {
	var found *cachedTask
	err := s.runReadTx(ctx, func(x *session) {
		found = nil
		x.queryInBatches(findTasks, 1, []any{id}, func(rows *sql.Rows) { found = scanTask(rows) })
	})
	switch {
	case err != nil:
		return store.Entry{}, err
	case found == nil:
		return store.Entry{}, store.ErrNotFound
	}
	return found.Entry, wrapError(found.err, false)
}

// Stats returns the counts of tasks. Its cost grows with the number of overdue tasks.
func (s *Store) Stats(ctx context.Context, _ int) (st store.Stats, err error) {
	err = s.runReadTx(ctx, func(x *session) { st = machine.Stats(newIndex(x), s.readClocks().Wall) })
	return st, err
}

// Check reports whether the file can be read. It warns of settings that may lose tasks,
// and of a long log.
func (s *Store) Check(ctx context.Context) (store.Health, error) {
	h := store.Health{Store: "SQLite in " + s.path}
	if s.syncInterval > 0 {
		h.Warnings = append(h.Warnings, fmt.Sprintf("the file is synced only every %v: a power failure may lose the commands since the last sync", s.syncInterval))
	}
	if n := s.WAL(); n > largeWAL {
		h.Warnings = append(h.Warnings, fmt.Sprintf("the write-ahead log has %d MB: a reader has been open for long", n>>20))
	}
	return h, s.runReadTx(ctx, func(x *session) { newIndex(x) })
}

// countStates returns the stored counters, and the actual number of tasks in each state.
func countStates(x *session) (n machine.Numbers, actual [store.Past + 1]int64) {
	x.queryRow(countTasks, nil, &actual[store.Pending], &actual[store.Running], &actual[store.Dead], &actual[store.Past])
	return newIndex(x).counters, actual
}

// Repair counts all tasks. If another program has changed the table, Repair corrects the
// counters and the number of running tasks of each limit.
func (s *Store) Repair(ctx context.Context, _ int) (r store.Repair, err error) {
	var n machine.Numbers
	var actual [store.Past + 1]int64
	var wrong bool
	err = s.runReadTx(ctx, func(x *session) {
		n, actual = countStates(x)
		wrong = machine.Recount(newIndex(x))
	})
	pending, running, dead, past := actual[store.Pending]-n.Pending, actual[store.Running]-n.Running, actual[store.Dead]-n.Dead, actual[store.Past]-n.Past
	r.Looked = actual[store.Pending] + actual[store.Running] + actual[store.Dead] + actual[store.Past]
	if err != nil || pending == 0 && running == 0 && dead == 0 && past == 0 && !wrong {
		return r, err
	}
	return r, s.callWriter(ctx, rowKeys{}, func(ix *index, _ machine.Moment) error {
		ix.counters.Pending += pending
		ix.counters.Running += running
		ix.counters.Dead += dead
		ix.counters.Past += past
		machine.Recount(ix)
		return nil
	})
}

// Verify checks the whole file: SQLite's own integrity check, the checksum of each row,
// and the counters. It returns the number of checked tasks. The first damage ends the
// check with an error that wraps [ErrDamaged].
//
// Verify takes minutes for millions of tasks. Until it returns, SQLite cannot empty its
// write-ahead log, so each write makes the log file longer.
func (s *Store) Verify(ctx context.Context) (checked int64, err error) {
	err = s.runReadTx(ctx, func(x *session) {
		checked = 0
		var result string
		if x.queryRow(`PRAGMA integrity_check(1)`, nil, &result); result != "ok" {
			must(fmt.Errorf("%w: %s", ErrDamaged, result))
		}
		n, actual := countStates(x)
		x.queryRows(`SELECT `+taskColumns+` FROM tickless_tasks`, nil, func(rows *sql.Rows) {
			t := scanTask(rows)
			if must(t.err); t.Check(&n) != nil {
				must(fmt.Errorf("%w: task %.80q: %w", ErrDamaged, t.ID, t.Check(&n)))
			}
			checked++
		})
		if want := [...]int64{0, n.Pending, n.Running, n.Dead, n.Past}; want != actual || checked != n.Pending+n.Running+n.Dead+n.Past {
			must(fmt.Errorf("%w: the file contains %v pending, running, dead and past tasks, but its counters say %v: Repair corrects them", ErrDamaged, actual[1:], want[1:]))
		}
	})
	return checked, err
}
