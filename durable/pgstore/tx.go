package pgstore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/batch"
	"github.com/tickless/tickless/durable/store/machine"
)

// An inboxRow is a task of ScheduleTx.
type inboxRow struct {
	Shard    int    `json:"shard"`
	ID       string `json:"id"`
	Handler  string `json:"handler"`
	Schedule string `json:"schedule"`
	Record   []byte `json:"record"`
	At       int64  `json:"at"`
	IsDelay  bool   `json:"is_delay"`
	Group    string `json:"grp"`
}

const (
	// insertInbox has one parameter, which every driver can send.
	insertInbox = `INSERT INTO tickless.inbox (shard, id, handler, schedule, record, at, grp)
		SELECT x.shard, x.id, x.handler, x.schedule, decode(x.record, 'base64'), x.at + CASE WHEN x.is_delay THEN tickless.clock() ELSE 0 END, x.grp
		FROM json_to_recordset($1::text::json) x(shard int, id text, handler text, schedule text, record text, at bigint, is_delay boolean, grp text)`
	notifyInbox = `SELECT pg_notify($1, $2)`
)

// ScheduleTx schedules tasks in a transaction of the application on the Store's database.
// When the transaction commits, the tasks exist and workers start them within some 20 ms.
// If it is rolled back, they were never there. tx is a [pgx.Tx], a [sql.Tx] of any driver for
// PostgreSQL, or anything else with the same method Exec or ExecContext. ScheduleTx panics
// if it has neither.
//
// ScheduleTx only inserts rows into the Store's inbox, and holds no lock that others wait
// for. The next command of the Store moves them to the other tasks. So ScheduleTx returns no
// outcomes, and a delay counts from the INSERT. If several transactions schedule the same
// key, the last that is moved wins, in the order of the rows' numbers among those that are
// moved together. A row that cannot be moved becomes a dead letter.
//
// The role needs USAGE of the schema and INSERT on its table inbox.
func (s *Store) ScheduleTx(ctx context.Context, tx any, items ...durable.Item) error {
	if s.waiters.Closed() {
		return store.ErrClosed
	}
	exec := execOf(tx)
	rows := make([]inboxRow, len(items))
	for i := range items {
		x, err := items[i].Stored()
		if err != nil {
			return err
		}
		c := store.Command{Op: store.Schedule, Items: []store.Item{x}}
		if err := c.Check(&inboxStamp); err != nil {
			return err
		}
		at, isDelay := x.When.Parts()
		rows[i] = inboxRow{store.ShardOf(x.ID, len(s.shards)), x.ID, x.Task.Handler, x.Task.Schedule, x.Task.Record, at, isDelay, x.Task.Group}
	}
	if len(rows) == 0 {
		return nil
	}
	text, err := json.Marshal(rows)
	if err != nil {
		return fmt.Errorf("pgstore: %w", err)
	}
	if err := exec(ctx, s.sql(insertInbox), string(text)); err != nil || !s.notifyTx {
		return wrapError(err, false)
	}
	slices.SortFunc(rows, func(a, b inboxRow) int { return cmp.Compare(a.Shard, b.Shard) })
	for _, r := range slices.CompactFunc(rows, func(a, b inboxRow) bool { return a.Shard == b.Shard }) {
		if err := exec(ctx, notifyInbox, s.schema, fmt.Sprint("tx ", r.Shard)); err != nil {
			return wrapError(err, false)
		}
	}
	return nil
}

func execOf(tx any) func(ctx context.Context, statement string, args ...any) error {
	switch tx := tx.(type) {
	case interface {
		Exec(ctx context.Context, statement string, args ...any) (pgconn.CommandTag, error)
	}:
		return func(ctx context.Context, statement string, args ...any) error {
			_, err := tx.Exec(ctx, statement, args...)
			return err
		}
	case interface {
		ExecContext(ctx context.Context, statement string, args ...any) (sql.Result, error)
	}:
		return func(ctx context.Context, statement string, args ...any) error {
			_, err := tx.ExecContext(ctx, statement, args...)
			return err
		}
	}
	panic(fmt.Sprintf("pgstore: ScheduleTx: tx must be a pgx.Tx or a *sql.Tx, got %T", tx))
}

// inboxStamp passes the checks of package store. No command is sent with it.
var inboxStamp = store.Stamp{Sender: "inbox", Number: 1}

// maxDrained is how many rows of the inbox a transaction drains, beside those of its own
// keys.
const maxDrained = 1000

const drainInbox = `DELETE FROM tickless.inbox WHERE ctid = ANY (ARRAY(
		(SELECT ctid FROM tickless.inbox WHERE shard = $1 AND tx >= $2::text::xid8 ORDER BY tx, number LIMIT $4)
		UNION ALL (SELECT i.ctid FROM unnest($3::text[]) k(id) CROSS JOIN LATERAL (SELECT ctid FROM tickless.inbox WHERE shard = $1 AND id = k.id ORDER BY shard, id) i)))
	RETURNING number, id, handler, schedule, record, at, grp`

// drain schedules the tasks that wait in the inbox. It drains what is visible: a cursor over
// the numbers would miss rows of transactions that commit late.
func (ix *index) drain(keys []string) {
	type row struct {
		number int64
		item   store.Item
	}
	encodedKeys := make([]string, len(keys))
	for i, k := range keys {
		encodedKeys[i] = encodeID(k)
	}
	var rows []row
	ix.queryNow(func(r pgx.Rows) {
		var x row
		var at int64
		t := &x.item.Task
		must(r.Scan(&x.number, &t.ID, &t.Handler, &t.Schedule, &t.Record, &at, &t.Group))
		x.item.ID, x.item.When = t.ID, store.At(store.Time(at))
		rows = append(rows, x)
	}, drainInbox, ix.shard, ix.horizon.from, encodedKeys, maxDrained)
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.number, b.number) })
	items := make([]store.Item, len(rows))
	for i := range rows {
		items[i] = rows[i].item
	}
	var b pgx.Batch
	ix.loadTasks(&b, batch.NeededIDs(items))
	ix.send(&b)
	for i := range rows {
		c := store.Command{Op: store.Schedule, Items: []store.Item{rows[i].item}}
		if err := c.Check(&inboxStamp); err != nil {
			c = store.Command{Op: store.Import, Items: []store.Item{deadRow(rows[i].number, rows[i].item, ix.now.Wall, err)}}
		}
		machine.Schedule(ix, ix.now, &c)
	}
	if len(rows) >= maxDrained {
		ix.nextHorizon.from, ix.inboxLeft = ix.horizon.from, true
	}
}

// deadRow returns a dead letter for a row that cannot be scheduled.
func deadRow(number int64, x store.Item, now store.Time, reason error) store.Item {
	x.Entry = &store.Entry{Task: x.Task, State: store.Dead, At: now, Failures: store.Note(nil, store.Failure{Time: now, Text: reason.Error()})}
	x.When, x.Task = store.When{}, store.Task{}
	c := store.Command{Op: store.Import, Items: []store.Item{x}}
	if c.Check(&inboxStamp) != nil {
		x.ID = fmt.Sprint("inbox-", number)
		x.Entry.Task = store.Task{ID: x.ID, Handler: "inbox"}
	}
	return x
}
