package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/machine"
)

// ScheduleTx schedules tasks in a transaction of the application on the same file: they are
// there when it commits, and workers are woken, and they were never there if it is rolled
// back. It returns an outcome for each item, in their order.
//
// The transaction must be one of BEGIN IMMEDIATE (a DSN with _txlock=immediate): SQLite
// refuses to write in a deferred one that has read before somebody else has written. Its
// connection must be in WAL mode, with synchronous of at least FULL, so that what it commits
// is on the disk; ScheduleTx returns an error that wraps [store.ErrUnfit] otherwise, and for
// another file. While the transaction is open nobody else writes.
func (s *Store) ScheduleTx(ctx context.Context, tx *sql.Tx, items ...durable.Item) (out []store.Outcome, err error) {
	if err := s.mayBegin(ctx); err != nil {
		return nil, err
	}
	if s.readOnly {
		return nil, ErrReadOnly
	}
	c := store.Command{Op: store.Schedule, Items: make([]store.Item, len(items))}
	for i := range items {
		if c.Items[i], err = items[i].Stored(); err != nil {
			return nil, err
		}
	}
	if err := s.mayUse(ctx, tx); err != nil {
		return nil, err
	}
	if err := s.scheduleTx(tx, &c, &out); err != nil {
		return nil, explain(err, false)
	}
	// One that is queued behind the transaction gets through when it has ended, and sees
	// what it has committed.
	go func() { _ = s.call(context.Background(), reads{}, func(*index, machine.Moment) error { return nil }) }()
	return out, nil
}

func (s *Store) scheduleTx(tx *sql.Tx, c *store.Command, out *[]store.Outcome) (err error) {
	defer recoverInto(&err)
	x := newSession(tx)
	defer x.close()
	ix := newIndex(x)
	var ids []string
	for i := range c.Items {
		ids = append(ids, c.Items[i].ID)
	}
	ix.load(ids, nil)
	*out = machine.Schedule(ix, s.moment(), c)
	ix.finish()
	return nil
}

// mayUse returns an error if what the transaction commits might be lost, or go elsewhere.
func (s *Store) mayUse(ctx context.Context, tx *sql.Tx) error {
	path, err := pathOf(ctx, tx)
	if err != nil {
		return err
	}
	if file, err := os.Stat(path); err != nil || !os.SameFile(file, s.file) {
		return fmt.Errorf("sqlitestore: ScheduleTx: the transaction is on %s: %w", path, store.ErrUnfit)
	}
	var mode string
	var sync int
	if err := tx.QueryRowContext(ctx, `PRAGMA journal_mode`).Scan(&mode); err != nil {
		return explain(err, false)
	}
	if err := tx.QueryRowContext(ctx, `PRAGMA synchronous`).Scan(&sync); err != nil {
		return explain(err, false)
	}
	if full := 2; !strings.EqualFold(mode, "wal") || sync < full && s.interval == 0 {
		return fmt.Errorf("sqlitestore: ScheduleTx: the transaction's connection must have journal_mode WAL and synchronous of at least 2, got %s and %d: %w", mode, sync, store.ErrUnfit)
	}
	return nil
}
