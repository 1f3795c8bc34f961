package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/tickless/tickless/durable/store"
)

// version is that of the tables. A file with a later one is refused.
const version = 1

// The tables. A task is in tickless_tasks under its id; times are microseconds since 1970.
// tickless_due orders those that are Pending, by what a worker must know and then by time,
// and tickless_rest the others. tickless_senders has the latest command of each sender, and
// tickless_numbers, of one row, machine.Numbers.
const schema = `
	CREATE TABLE tickless_tasks (
		id TEXT PRIMARY KEY, state INTEGER NOT NULL, at INTEGER NOT NULL,
		handler TEXT NOT NULL, schedule TEXT NOT NULL, record BLOB,
		due INTEGER NOT NULL, attempts INTEGER NOT NULL, crashes INTEGER NOT NULL, runs INTEGER NOT NULL,
		token INTEGER NOT NULL, lease INTEGER NOT NULL, more TEXT, sum INTEGER NOT NULL);
	CREATE INDEX tickless_due ON tickless_tasks (handler, schedule, at, id) WHERE state = 1;
	CREATE INDEX tickless_rest ON tickless_tasks (state, at, id) WHERE state > 1;
	CREATE TABLE tickless_senders (
		name TEXT PRIMARY KEY, number INTEGER, seen INTEGER, outcomes BLOB, receipts BLOB, extensions BLOB,
		after INTEGER, last INTEGER, claim TEXT) WITHOUT ROWID;
	CREATE TABLE tickless_numbers (
		version INTEGER NOT NULL, pending INTEGER NOT NULL, running INTEGER NOT NULL, dead INTEGER NOT NULL,
		claimed INTEGER NOT NULL, done INTEGER NOT NULL, retried INTEGER NOT NULL, died INTEGER NOT NULL,
		crashed INTEGER NOT NULL, released INTEGER NOT NULL, refused INTEGER NOT NULL, cancelled INTEGER NOT NULL,
		paused INTEGER NOT NULL, fence INTEGER NOT NULL, told INTEGER NOT NULL, wakes INTEGER NOT NULL,
		wall INTEGER NOT NULL, steady INTEGER NOT NULL, boot TEXT NOT NULL);
	INSERT INTO tickless_numbers VALUES (1, 0,0,0, 0,0,0,0,0,0,0,0, 0,0,0,0, 0,0,'');`

// The statements. Those that end in Some are for any number of rows: see session.some.
const (
	columns    = `id, state, at, handler, schedule, record, due, attempts, crashes, runs, token, lease, more, sum`
	findTask   = `SELECT ` + columns + ` FROM tickless_tasks WHERE id = ?`
	findSome   = `SELECT ` + columns + ` FROM tickless_tasks WHERE id IN`
	insertSome = `INSERT OR FAIL INTO tickless_tasks (` + columns + `) VALUES` // FAIL needs no journal of the statement
	moveTask   = `UPDATE tickless_tasks SET state=?, at=?, due=?, attempts=?, crashes=?, runs=?, token=?, lease=?, more=?, sum=? WHERE id=?`
	deleteSome = `DELETE FROM tickless_tasks WHERE id IN`
	dueTasks   = `SELECT at, id FROM tickless_tasks INDEXED BY tickless_due WHERE state = 1 AND handler = ? AND schedule = ? ORDER BY at, id LIMIT ?`
	runTasks   = `SELECT id FROM tickless_tasks INDEXED BY tickless_rest WHERE state > 1 AND state = 2 AND at <= ?`
	firstEnd   = `SELECT min(at) FROM tickless_tasks INDEXED BY tickless_rest WHERE state > 1 AND state = 2 AND at > ?`
	nextKind   = `SELECT handler, schedule FROM tickless_tasks INDEXED BY tickless_due WHERE state = 1 AND (handler, schedule) > (?, ?) ORDER BY handler, schedule LIMIT 1`
	countKind  = `SELECT count(*), ifnull(min(at), 0) FROM tickless_tasks INDEXED BY tickless_due WHERE state = 1 AND handler = ? AND schedule = ? AND at >= ? AND at < ?`
	countRest  = `SELECT count(*) FROM tickless_tasks INDEXED BY tickless_rest WHERE state > 1 AND state = ?`

	findSender  = `SELECT name, number, seen, outcomes, receipts, extensions, after, last, claim FROM tickless_senders WHERE name IN`
	putSenders  = `INSERT OR REPLACE INTO tickless_senders VALUES`
	dropSenders = `DELETE FROM tickless_senders WHERE name IN`
	goneSender  = `SELECT name FROM (SELECT name, seen FROM tickless_senders WHERE name > ? ORDER BY name LIMIT 64) WHERE seen < ? LIMIT ?`
	claims      = `SELECT claim FROM tickless_senders WHERE claim IS NOT NULL`

	getNumbers = `SELECT pending, running, dead, claimed, done, retried, died, crashed, released, refused, cancelled, paused, fence, told, wakes, wall, steady, boot FROM tickless_numbers`
	putNumbers = `UPDATE tickless_numbers SET pending=?, running=?, dead=?, claimed=?, done=?, retried=?, died=?, crashed=?, released=?, refused=?, cancelled=?, paused=?, fence=?, told=?, wakes=?, wall=?, steady=?, boot=?`
	getVersion = `PRAGMA data_version`
	getWakes   = `SELECT wakes FROM tickless_numbers`
)

// lookAtSchema reports whether the tables are there, or an error if they are others.
func lookAtSchema(ctx context.Context, conn *sql.Conn) (there bool, err error) {
	var n int
	err = conn.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE name IN ('tickless_tasks', 'tickless_senders', 'tickless_numbers')`).Scan(&n)
	if err != nil || n == 0 {
		return false, err
	}
	var v int64
	err = conn.QueryRowContext(ctx, `SELECT version FROM tickless_numbers`).Scan(&v)
	switch {
	case isBusy(err):
		return false, err
	case err != nil || n != 3:
		return false, fmt.Errorf("%w: tables that begin with tickless_ are not a store's", store.ErrSchema)
	case v != version:
		return false, fmt.Errorf("%w: its tables have version %d, and this program knows %d", store.ErrSchema, v, version)
	}
	for _, query := range []string{findTask, dueTasks, runTasks, findSender + "(?)", getNumbers} {
		stmt, err := conn.PrepareContext(ctx, query)
		switch {
		case isBusy(err):
			return false, err
		case err != nil:
			return false, fmt.Errorf("%w: %w", store.ErrSchema, err)
		}
		_ = stmt.Close()
	}
	return true, nil
}
