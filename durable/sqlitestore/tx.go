package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/batch"
	"github.com/tickless/tickless/durable/store/machine"
)

// ScheduleTx schedules tasks in a transaction of the application on the same file. When
// the transaction commits, the tasks exist and workers wake up. ScheduleTx returns an
// outcome for each item, in order.
//
// The transaction must start with BEGIN IMMEDIATE (a DSN with _txlock=immediate), because
// SQLite may refuse to write in a deferred transaction. No other connection can write
// while the transaction is open.
//
// The connection must use WAL mode and at least synchronous=FULL, so that the commit is
// on disk. With another setting or another file, ScheduleTx returns an error that wraps
// [store.ErrUnfit].
func (s *Store) ScheduleTx(ctx context.Context, tx *sql.Tx, items ...durable.Item) (out []store.Outcome, err error) {
	if err := s.checkOpen(ctx); err != nil {
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
	if err := s.checkTx(ctx, tx); err != nil {
		return nil, err
	}
	if err := s.scheduleInTx(tx, &c, &out); err != nil {
		return nil, wrapError(err, false)
	}
	// The writer runs this call after the transaction has ended. It reads the new
	// counters, and wakes the workers.
	go func() {
		_ = s.callWriter(context.Background(), &call{Run: func(*index) error { return nil }})
	}()
	return out, nil
}

func (s *Store) scheduleInTx(tx *sql.Tx, c *store.Command, out *[]store.Outcome) (err error) {
	defer batch.Recover(&err)
	x := newSession(tx)
	defer x.close()
	ix := newIndex(x)
	ix.loadRows(batch.NeededIDs(c.Items), nil)
	*out = machine.Schedule(ix, s.readClocks(), c)
	ix.writeChanges()
	return nil
}

// checkTx returns an error if the transaction is on another file, or if its commit might
// not be on disk.
func (s *Store) checkTx(ctx context.Context, tx *sql.Tx) error {
	path, err := databasePath(ctx, tx)
	if err != nil {
		return err
	}
	if file, err := os.Stat(path); err != nil || !os.SameFile(file, s.fileInfo) {
		return fmt.Errorf("sqlitestore: ScheduleTx: the transaction must be on the Store's file, got %s: %w", path, store.ErrUnfit)
	}
	var mode string
	var sync int
	if err := tx.QueryRowContext(ctx, `PRAGMA journal_mode`).Scan(&mode); err != nil {
		return wrapError(err, false)
	}
	if err := tx.QueryRowContext(ctx, `PRAGMA synchronous`).Scan(&sync); err != nil {
		return wrapError(err, false)
	}
	if full := 2; !strings.EqualFold(mode, "wal") || sync < full && s.syncInterval == 0 {
		return fmt.Errorf("sqlitestore: ScheduleTx: the transaction's connection must have journal_mode WAL and synchronous of at least 2, got %s and %d: %w", mode, sync, store.ErrUnfit)
	}
	return nil
}
