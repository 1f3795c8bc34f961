package sqlitestore

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/batch"
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

// A reader is a connection for reading, with its prepared statements.
type reader struct {
	*session
	conn *sql.Conn
}

// takeReader waits until a reader is free. Every reader must be given back.
func (s *Store) takeReader(ctx context.Context) (*reader, error) {
	select {
	case r := <-s.readers:
		if r != nil {
			return r, nil
		}
	case <-s.closed:
		return nil, store.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	conn, err := s.readDB.Conn(ctx)
	if err != nil {
		s.giveBack(nil)
		return nil, err
	}
	return &reader{newSession(conn), conn}, nil
}

// giveBack lets others use a reader, or open a new one if r is nil.
func (s *Store) giveBack(r *reader) {
	s.readers <- r
	if s.waiters.Closed() {
		s.closeReaders()
	}
}

// closeReaders closes the readers that are free.
func (s *Store) closeReaders() {
	for {
		select {
		case r := <-s.readers:
			if r != nil {
				r.close()
				_ = r.conn.Close()
			}
		default:
			return
		}
	}
}

// runReadTx calls f in a read transaction, so that f sees a consistent state. It calls f
// again if the file was locked.
func (s *Store) runReadTx(ctx context.Context, f func(x *session)) error {
	if err := s.checkReadable(ctx); err != nil {
		return err
	}
	err := retryWhileBusy(ctx, func() error { return s.tryRead(ctx, f) })
	if err != nil && ctx.Err() != nil && !errors.Is(err, ErrBusy) {
		return store.Ended(ctx)
	}
	return wrapError(err, false)
}

func (s *Store) tryRead(ctx context.Context, f func(x *session)) (err error) {
	r, err := s.takeReader(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if _, err := r.conn.ExecContext(context.Background(), "ROLLBACK"); err != nil { // it has ended by itself, or the connection is unusable
			r.close()
			_ = r.conn.Raw(func(any) error { return driver.ErrBadConn }) // closes it
			r = nil
		}
		s.giveBack(r)
	}()
	defer batch.Recover(&err)
	if _, err := r.conn.ExecContext(ctx, "BEGIN"); err != nil {
		return err
	}
	r.ctx = ctx
	var version int64
	r.queryRow(getSchema, nil, &version)
	must(checkSchemaVersion(version)) // another process may have upgraded the tables
	f(r.session)
	return nil
}

// Get returns a task's entry, or store.ErrNotFound.
func (s *Store) Get(ctx context.Context, _ int, id string) (store.Entry, error) {
	var found *cachedTask
	err := s.runReadTx(ctx, func(x *session) {
		found = nil
		x.queryInBatches(findTasks, 1, []any{id}, func(rows *sql.Rows) { found = scanTask(rows) })
		if found != nil {
			machine.NotePause(&found.Entry, (&index{session: x}).Limits())
		}
	})
	switch {
	case err != nil:
		return store.Entry{}, err
	case found == nil || found.err == nil && found.HasExpired(s.readClocks().Wall):
		return store.Entry{}, store.ErrNotFound
	}
	return found.Entry, wrapError(found.err, false)
}

// Stats returns the counts of tasks. Its cost grows with the number of overdue tasks.
func (s *Store) Stats(ctx context.Context, _ int) (st store.Stats, err error) {
	err = s.runReadTx(ctx, func(x *session) { st = machine.Stats(newIndex(x), s.readClocks().Wall) })
	return st, err
}

// Workers returns the workers.
func (s *Store) Workers(ctx context.Context, _ int) (workers []store.Worker, err error) {
	err = s.runReadTx(ctx, func(x *session) { workers = machine.Workers(newIndex(x), s.readClocks().Wall) })
	return workers, err
}

// Check reports whether the file can be read. It warns of settings that may lose tasks,
// of a long log, and of an index that does not have all tasks. It takes some 50 ms for a
// million tasks; [Store.Verify] checks everything.
func (s *Store) Check(ctx context.Context) (store.Health, error) {
	h := store.Health{Store: "SQLite in " + s.path}
	if s.syncInterval > 0 {
		h.Warnings = append(h.Warnings, fmt.Sprintf("the file is synced only every %v: a power failure may lose the commands since the last sync", s.syncInterval))
	}
	if n := s.WAL(); n > largeWAL {
		h.Warnings = append(h.Warnings, fmt.Sprintf("the write-ahead log has %d MB: a reader has been open for long", n>>20))
	}
	return h, s.runReadTx(ctx, func(x *session) {
		n, _, err := x.checkSmallRows()
		must(err)
		if n > 0 {
			h.Warnings = append(h.Warnings, fmt.Sprintf("%d rows of limits and of commands are damaged: set the limits again, and call Repair", n))
		}
		if want, found := x.countTasks(); want != found {
			h.Warnings = append(h.Warnings, fmt.Sprintf("the indexes contain %v pending, running, dead and past tasks, but the counters say %v: tasks may never run until Repair corrects this", found, want))
		}
	})
}

// stateCounts has the number of pending, running, dead and past tasks.
type stateCounts [store.Past]int64

// countTasks returns the number of tasks in each state: as the counters say, and as the
// indexes contain.
func (x *session) countTasks() (want, found stateCounts) {
	x.queryRow(countTasks, nil, &found[0], &found[1], &found[2], &found[3])
	n := newIndex(x).counters
	return stateCounts{n.Pending, n.Running, n.Dead, n.Past}, found
}

// Repair makes the indexes again if they do not match the rows, counts all tasks, and
// corrects the counters and the number of running tasks of each limit. It removes damaged
// rows of limits, and of commands that clients and workers could send again; they count as
// Orphaned. It does not change damaged tasks: Schedule replaces them.
//
// If the row with the counters is damaged, all other calls fail. Repair makes a new one;
// a pause and the numbers of past events are lost.
func (s *Store) Repair(ctx context.Context, _ int) (r store.Repair, err error) {
	var needsRepair, needsIndexes bool
	err = s.runReadTx(ctx, func(x *session) {
		r = store.Repair{}
		needsIndexes = x.integrityCheck() != "ok"
		n, damaged, err := x.checkSmallRows()
		if r.Orphaned = n; err == nil {
			var want, found stateCounts
			want, found = x.countTasks()
			needsRepair = want != found || machine.Recount(newIndex(x))
			r.Looked = found[0] + found[1] + found[2] + found[3]
		}
		needsRepair = needsRepair || needsIndexes || damaged != nil || err != nil
	})
	if err != nil || !needsRepair {
		return r, err
	}
	prepare := func() { s.writer.session.repairTables(needsIndexes, s.readClocks()) }
	err = s.callWriter(ctx, &call{Prepare: prepare, Run: func(ix *index) error {
		_, found := ix.countTasks()
		n := &ix.counters
		n.Pending, n.Running, n.Dead, n.Past = found[0], found[1], found[2], found[3]
		n.Limits = int64(len(ix.Limits()))
		machine.Recount(ix)
		r.Looked = found[0] + found[1] + found[2] + found[3]
		return nil
	}})
	if err != nil || !needsIndexes {
		return r, err
	}
	return r, s.runReadTx(ctx, func(x *session) {
		if result := x.integrityCheck(); result != "ok" {
			must(fmt.Errorf("%w: Repair cannot correct this: %s", ErrDamaged, result))
		}
	})
}

func (x *session) integrityCheck() (result string) {
	x.queryRow(`PRAGMA integrity_check(1)`, nil, &result)
	return result
}

// checkSmallRows checks the checksums of the small tables. It returns how many rows of
// senders and limits are damaged with the first error, and the error of the counters' row.
func (x *session) checkSmallRows() (n int64, damaged, numbersErr error) {
	check := func(v any) func(rows *sql.Rows) {
		return func(rows *sql.Rows) {
			r := scanSmallRow(rows)
			if err := r.decode(v); err != nil {
				n, damaged = n+1, cmp.Or(damaged, err)
			}
		}
	}
	x.queryRows(allSenders, nil, check(new(machine.Sender)))
	x.queryRows(getLimits, nil, check(new(machine.Limit)))
	x.queryRows(allGroups, nil, check(new(machine.Group)))
	x.queryRows(getNumbers, nil, func(rows *sql.Rows) {
		r := scanSmallRow(rows)
		numbersErr = r.decode(new(machine.Numbers))
	})
	return n, damaged, numbersErr
}

// repairTables makes the indexes again if they need it, and removes damaged rows of the small tables. If
// the counters' row is damaged, it writes a new one. The counters are wrong afterwards.
func (x *session) repairTables(needsIndexes bool, at machine.Moment) {
	if needsIndexes {
		x.exec(`REINDEX tickless_tasks`)
	}
	for _, table := range []struct{ selectRows, drop string }{
		{allSenders, `DELETE FROM tickless_senders WHERE name = ?`}, {getLimits, dropLimit}, {allGroups, dropGroup},
	} {
		var names []string
		x.queryRows(table.selectRows, nil, func(rows *sql.Rows) {
			r := scanSmallRow(rows)
			if r.decode(new(any)) != nil {
				names = append(names, r.name)
			}
		})
		for _, name := range names {
			x.exec(table.drop, name)
		}
	}
	var r smallRow
	x.queryRows(getNumbers, nil, func(rows *sql.Rows) { r = scanSmallRow(rows) })
	if r.decode(new(machine.Numbers)) != nil {
		// The last token is unknown. Tokens count from 1, so none has reached the time.
		r = smallRow{text: encodeJSON(&machine.Numbers{Fence: int64(at.Wall), Wakes: 1}), first: schemaVersion, second: 1}
		x.exec(putNumbers, r.second, r.text, r.checksum())
	}
}

// Verify checks the whole file: SQLite's own integrity check, the checksum of each row,
// the indexes and the counters. It returns the number of checked tasks. The first damage
// ends the check with an error that wraps [ErrDamaged].
//
// Verify takes minutes for millions of tasks. Until it returns, SQLite cannot empty its
// write-ahead log, so each write makes the log file longer.
func (s *Store) Verify(ctx context.Context) (checked int64, err error) {
	err = s.runReadTx(ctx, func(x *session) {
		checked = 0
		if result := x.integrityCheck(); result != "ok" {
			must(fmt.Errorf("%w: %s: Repair corrects indexes", ErrDamaged, result))
		}
		_, damaged, numbersErr := x.checkSmallRows()
		must(cmp.Or(numbersErr, damaged))
		counters := newIndex(x).counters
		var rows stateCounts
		x.queryRows(`SELECT `+taskColumns+` FROM tickless_tasks NOT INDEXED`, nil, func(r *sql.Rows) {
			t := scanTask(r)
			if must(t.err); t.Check(&counters) != nil {
				must(fmt.Errorf("%w: task %q: %w", ErrDamaged, store.Shorten(t.ID), t.Check(&counters)))
			}
			rows[t.State-1]++
			checked++
		})
		if want, found := x.countTasks(); want != found || want != rows {
			must(fmt.Errorf("%w: the file contains %v pending, running, dead and past tasks, the indexes %v, and its counters say %v: Repair corrects them", ErrDamaged, rows, found, want))
		}
	})
	return checked, err
}
