package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/tickless/tickless/durable/store"
)

// schemaVersion is the version of the tables. A file with another version is refused.
const schemaVersion = 2

// The tables and indexes. Times are microseconds since 1970.
//
//	tickless_tasks    the tasks by id
//	tickless_due      pending tasks by handler, schedule and time
//	tickless_rest     all other tasks by state and time
//	tickless_more     tasks with a value in the column more, to list tasks by error
//	tickless_senders  the machine.Sender of each name, as JSON
//	tickless_limits   the machine.Limit of each handler with a limit, as JSON
//	tickless_numbers  one row: the machine.Numbers, as JSON
const schema = `
	CREATE TABLE tickless_tasks (
		id TEXT PRIMARY KEY, state INTEGER NOT NULL, at INTEGER NOT NULL,
		handler TEXT NOT NULL, schedule TEXT NOT NULL, record BLOB,
		due INTEGER NOT NULL, attempts INTEGER NOT NULL,
		token INTEGER NOT NULL, lease INTEGER NOT NULL, more TEXT, sum INTEGER NOT NULL);
	CREATE INDEX tickless_due ON tickless_tasks (handler, schedule, at) WHERE state = 1;
	CREATE INDEX tickless_rest ON tickless_tasks (state, at) WHERE state > 1;
	CREATE INDEX tickless_more ON tickless_tasks (state, at) WHERE more IS NOT NULL;
	CREATE TABLE tickless_senders (
		name TEXT PRIMARY KEY, seen INTEGER, worker INTEGER, sender TEXT) WITHOUT ROWID;
	CREATE TABLE tickless_limits (handler TEXT PRIMARY KEY, used TEXT NOT NULL) WITHOUT ROWID;
	CREATE TABLE tickless_numbers (version INTEGER NOT NULL, wakes INTEGER NOT NULL, numbers TEXT NOT NULL);
	INSERT INTO tickless_numbers VALUES (2, 0, '{}');`

// ROWS stands for any number of rows. OR FAIL lets SQLite write many rows without a
// journal. In putSenders this also needs columns without NOT NULL.
const (
	taskColumns = `id, state, at, handler, schedule, record, due, attempts, token, lease, more, sum`
	findTasks   = `SELECT ` + taskColumns + ` FROM tickless_tasks WHERE id IN ROWS`
	insertTasks = `INSERT OR FAIL INTO tickless_tasks (` + taskColumns + `) VALUES ROWS`
	moveTask    = `UPDATE tickless_tasks SET state=?, at=?, due=?, attempts=?, token=?, lease=?, more=?, sum=? WHERE id=?`
	deleteTasks = `DELETE FROM tickless_tasks WHERE id IN ROWS`
	dueTasks    = `SELECT ` + taskColumns + ` FROM tickless_tasks INDEXED BY tickless_due WHERE state = 1 AND handler = ? AND schedule = ? AND at <= ? ORDER BY at LIMIT ?`
	nextDue     = `SELECT min(at) FROM tickless_tasks INDEXED BY tickless_due WHERE state = 1 AND handler = ? AND schedule = ? AND at > ?`
	dueTimes    = `SELECT at FROM tickless_tasks INDEXED BY tickless_due WHERE state = 1 AND handler = ? AND schedule = ? AND at >= ? AND at < ? ORDER BY at LIMIT ?`
	runTasks    = `SELECT ` + taskColumns + ` FROM tickless_tasks INDEXED BY tickless_rest WHERE state > 1 AND state = 2 AND at <= ?`
	overTasks   = `SELECT ` + taskColumns + ` FROM tickless_tasks INDEXED BY tickless_rest WHERE state > 1 AND state = 4 AND at <= ? ORDER BY at LIMIT ?`
	firstEnd    = `SELECT min(at) FROM tickless_tasks INDEXED BY tickless_rest WHERE state > 1 AND state = 2 AND at > ?`
	// nextKind selects the handler's next schedule, or else the next handler. The single
	// condition handler > ? AND schedule > ? would skip schedules.
	nextKind = `SELECT * FROM (SELECT handler, schedule FROM tickless_tasks INDEXED BY tickless_due WHERE state = 1 AND handler = ?1 AND schedule > ?2 ORDER BY schedule LIMIT 1)
		UNION ALL SELECT * FROM (SELECT handler, schedule FROM tickless_tasks INDEXED BY tickless_due WHERE state = 1 AND handler > ?1 ORDER BY handler, schedule LIMIT 1) LIMIT 1`
	countKind  = `SELECT count(*), ifnull(min(at), 0) FROM tickless_tasks INDEXED BY tickless_due WHERE state = 1 AND handler = ? AND schedule = ? AND at >= ? AND at < ?`
	countTasks = `SELECT (SELECT count(*) FROM tickless_tasks WHERE state = 1), (SELECT count(*) FROM tickless_tasks WHERE state > 1 AND state = 2), (SELECT count(*) FROM tickless_tasks WHERE state > 1 AND state = 3), (SELECT count(*) FROM tickless_tasks WHERE state > 1 AND state = 4)`

	findSenders = `SELECT name, sender FROM tickless_senders WHERE name IN ROWS`
	putSenders  = `INSERT OR FAIL INTO tickless_senders VALUES ROWS ON CONFLICT (name) DO UPDATE SET seen = excluded.seen, worker = excluded.worker, sender = excluded.sender`
	dropSenders = `DELETE FROM tickless_senders WHERE name IN ROWS`
	goneSenders = `SELECT name FROM (SELECT name, seen FROM tickless_senders WHERE name > ? ORDER BY name LIMIT 64) WHERE seen < ? LIMIT ?`
	workers     = `SELECT sender FROM tickless_senders WHERE worker = 1`

	getLimits = `SELECT handler, used FROM tickless_limits`
	putLimit  = `INSERT INTO tickless_limits VALUES (?, ?) ON CONFLICT (handler) DO UPDATE SET used = excluded.used`
	dropLimit = `DELETE FROM tickless_limits WHERE handler = ?`

	getNumbers = `SELECT version, numbers FROM tickless_numbers`
	putNumbers = `UPDATE tickless_numbers SET wakes = ?, numbers = ?`
	getVersion = `PRAGMA data_version`
	getWakes   = `SELECT wakes FROM tickless_numbers`
)

func checkSchemaVersion(v int64) error {
	if v != schemaVersion {
		return fmt.Errorf("%w: its tables have version %d, but this program supports version %d", store.ErrSchema, v, schemaVersion)
	}
	return nil
}

// tablesExist reports whether the Store's tables exist. It returns an error if other
// tables have their names.
func tablesExist(ctx context.Context, conn *sql.Conn) (exist bool, err error) {
	var n int
	err = conn.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE name IN ('tickless_tasks', 'tickless_senders', 'tickless_numbers')`).Scan(&n)
	if err != nil || n == 0 {
		return false, err
	}
	wrapTableError := func(err error) error {
		if isBusyError(err) {
			return err
		}
		return fmt.Errorf("%w: other tables have names that begin with tickless_: %w", store.ErrSchema, err)
	}
	var v int64
	if err = conn.QueryRowContext(ctx, `SELECT version FROM tickless_numbers`).Scan(&v); err != nil {
		return false, wrapTableError(err)
	}
	if err := checkSchemaVersion(v); err != nil {
		return false, err
	}
	for _, query := range []string{statement{findTasks, 1, 1}.String(), dueTasks, runTasks, statement{findSenders, 1, 1}.String(), getNumbers, getWakes} {
		stmt, err := conn.PrepareContext(ctx, query)
		if err != nil {
			return false, wrapTableError(err)
		}
		_ = stmt.Close()
	}
	return true, nil
}
