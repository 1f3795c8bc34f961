package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/batch"
)

// schemaVersion is the version of the tables. Open upgrades a file with the version
// before; a file with any other version is refused.
const schemaVersion = 3

// The tables and indexes. Times are microseconds since 1970.
//
//	tickless_tasks    the tasks by id
//	tickless_due      pending tasks by handler, schedule and time, without suspects
//	tickless_suspects pending suspects, whose column state is 5, in the same way. The column
//	                  state of a parked task is 8 higher: see columnState
//	tickless_rest     tasks whose column state is not 1, by state and time; 6 is for pending
//	                  tasks that are paused
//	tickless_grouped  tasks with a group, whose column grp is then not NULL
//	tickless_more     tasks with a value in the column more, to list tasks by error
//	tickless_ended    finished runs by the time when they ended: see store.RunRecord
//	tickless_senders  the machine.Sender of each name, or of each set, as JSON
//	tickless_limits   the machine.Limit of each handler with a limit, as JSON
//	tickless_groups   the machine.Group of each group with a state, as JSON: see groupName
//	tickless_numbers  one row: the version, and the machine.Numbers as JSON
//
// The column sum has the row's checksum: see rowChecksum and smallRow. A statement that
// changes a table may only name the columns that it knows, so that later versions can add
// columns.
const schema = `
	CREATE TABLE tickless_tasks (
		id TEXT PRIMARY KEY, state INTEGER NOT NULL, at INTEGER NOT NULL,
		handler TEXT NOT NULL, schedule TEXT NOT NULL, record BLOB,
		due INTEGER NOT NULL, attempts INTEGER NOT NULL,
		token INTEGER NOT NULL, lease INTEGER NOT NULL, more TEXT, sum INTEGER NOT NULL, worker INTEGER, version INTEGER,
		grp TEXT);
	CREATE INDEX tickless_due ON tickless_tasks (handler, schedule, at) WHERE state = 1;
	CREATE INDEX tickless_suspects ON tickless_tasks (handler, schedule, at) WHERE state = 5;
	CREATE INDEX tickless_rest ON tickless_tasks (state, at) WHERE state > 1;
	CREATE INDEX tickless_more ON tickless_tasks (state, at) WHERE more IS NOT NULL;
	CREATE INDEX tickless_ended ON tickless_tasks (substr(record, 2, 16), id) WHERE state = 4 AND length(record) > 16;
	CREATE INDEX tickless_grouped ON tickless_tasks (handler, grp, state, schedule, at) WHERE grp IS NOT NULL;
	CREATE TABLE tickless_groups (name TEXT PRIMARY KEY, used TEXT NOT NULL, until INTEGER NOT NULL, sum INTEGER) WITHOUT ROWID;
	CREATE INDEX tickless_until ON tickless_groups (until);
	CREATE TABLE tickless_senders (
		name TEXT PRIMARY KEY, seen INTEGER, worker INTEGER, sender TEXT, sum INTEGER) WITHOUT ROWID;
	CREATE TABLE tickless_limits (handler TEXT PRIMARY KEY, used TEXT NOT NULL, sum INTEGER) WITHOUT ROWID;
	CREATE TABLE tickless_numbers (version INTEGER NOT NULL, wakes INTEGER NOT NULL, numbers TEXT NOT NULL, sum INTEGER);
	INSERT INTO tickless_numbers (version, wakes, numbers) VALUES (0, 0, '{}');`

// upgradeSchema changes the tables of version 2. It must not rewrite every row, because a
// file may have millions: it adds columns that may be NULL, and indexes. Afterwards
// upgradeRows changes the small tables.
const upgradeSchema = `
	CREATE INDEX tickless_ended ON tickless_tasks (substr(record, 2, 16), id) WHERE state = 4 AND length(record) > 16;
	CREATE INDEX tickless_suspects ON tickless_tasks (handler, schedule, at) WHERE state = 5;
	ALTER TABLE tickless_tasks ADD COLUMN worker INTEGER;
	ALTER TABLE tickless_tasks ADD COLUMN version INTEGER;
	ALTER TABLE tickless_tasks ADD COLUMN grp TEXT;
	CREATE INDEX tickless_grouped ON tickless_tasks (handler, grp, state, schedule, at) WHERE grp IS NOT NULL;
	CREATE TABLE tickless_groups (name TEXT PRIMARY KEY, used TEXT NOT NULL, until INTEGER NOT NULL, sum INTEGER) WITHOUT ROWID;
	CREATE INDEX tickless_until ON tickless_groups (until);
	ALTER TABLE tickless_senders ADD COLUMN sum INTEGER;
	ALTER TABLE tickless_limits ADD COLUMN sum INTEGER;
	ALTER TABLE tickless_numbers ADD COLUMN sum INTEGER;`

// A limit is written LIMIT +?, because SQLite plans a statement with LIMIT ? again for each
// value. ROWS stands for any number of rows. OR FAIL lets SQLite write many rows without a
// journal. In putSenders this also needs columns without NOT NULL. Tasks are written one by
// one, because an index has an expression: then SQLite keeps such a journal for each
// statement that writes several rows.
const (
	taskColumns = `id, state, at, handler, schedule, record, due, attempts, token, lease, more, sum, worker, version, grp`
	findTasks   = `SELECT ` + taskColumns + ` FROM tickless_tasks WHERE id IN ROWS`
	insertTask  = `INSERT INTO tickless_tasks (` + taskColumns + `) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`
	moveTask    = `UPDATE tickless_tasks SET state=?, at=?, due=?, attempts=?, token=?, lease=?, more=?, sum=?, worker=?, version=? WHERE id=?`
	writeTask   = `UPDATE tickless_tasks SET state=?, at=?, due=?, attempts=?, token=?, lease=?, more=?, sum=?, worker=?, version=?, record=? WHERE id=?`
	moveRow     = `UPDATE tickless_tasks SET state=?, at=?, due=?, attempts=?, token=?, lease=?, more=?, sum=?, worker=?, version=? WHERE rowid=?`
	deleteRow   = `DELETE FROM tickless_tasks WHERE rowid = ?`
	deleteTask  = `DELETE FROM tickless_tasks WHERE id = ?`
	runTasks    = `SELECT ` + taskColumns + ` FROM tickless_tasks INDEXED BY tickless_rest WHERE state > 1 AND state = 2 AND at <= ?`
	overTasks   = `SELECT ` + taskColumns + ` FROM tickless_tasks INDEXED BY tickless_rest WHERE state > 1 AND state = 4 AND at <= ? ORDER BY at LIMIT +?`
	firstExpiry = `SELECT min(at) FROM tickless_tasks INDEXED BY tickless_rest WHERE state > 1 AND state = 4`
	countOver   = `SELECT count(*) FROM tickless_tasks INDEXED BY tickless_rest WHERE state > 1 AND state = 4 AND at <= ?`
	firstEnd    = `SELECT min(at) FROM tickless_tasks INDEXED BY tickless_rest WHERE state > 1 AND state = 2 AND at > ?`
	countTasks  = `SELECT (SELECT count(*) FROM tickless_tasks WHERE state = 1) + (SELECT count(*) FROM tickless_tasks WHERE state = 5)
		+ (SELECT count(*) FROM tickless_tasks WHERE state > 1 AND state IN (6, 9, 13)), (SELECT count(*) FROM tickless_tasks WHERE state > 1 AND state = 2), (SELECT count(*) FROM tickless_tasks WHERE state > 1 AND state = 3), (SELECT count(*) FROM tickless_tasks WHERE state > 1 AND state = 4)`

	// members selects the first tasks of each schedule in some groups, whose column state has
	// one of some values.
	members = `WITH RECURSIVE k(h, g, st, s) AS (
		SELECT value ->> 0, value ->> 1, v.column1, (SELECT min(schedule) FROM %[1]s AND handler = value ->> 0 AND grp = value ->> 1 AND state = v.column1)
			FROM json_each(?1) CROSS JOIN (VALUES (%[2]d), (%[3]d)) AS v
		UNION ALL SELECT h, g, st, (SELECT min(schedule) FROM %[1]s AND handler = h AND grp = g AND state = st AND schedule > s) FROM k WHERE s IS NOT NULL)
		SELECT ` + taskColumns + ` FROM k CROSS JOIN tickless_tasks AS t
		ON t.rowid IN (SELECT rowid FROM %[1]s AND handler = h AND grp = g AND state = st AND schedule = s ORDER BY at LIMIT ?2) WHERE s IS NOT NULL`
	countParked = `SELECT handler, schedule, count(*), min(at) FROM tickless_tasks INDEXED BY tickless_grouped
		WHERE grp IS NOT NULL AND state IN (9, 13) AND at <= ? GROUP BY handler, schedule`

	// The small tables: each query selects the columns of a smallRow.
	allSenders  = `SELECT name, sender, seen, worker, sum FROM tickless_senders`
	findSenders = allSenders + ` WHERE name IN ROWS`
	workers     = allSenders + ` WHERE worker = 1`
	getLimits   = `SELECT handler, used, 0, 0, sum FROM tickless_limits`
	allGroups   = `SELECT name, used, until, 0, sum FROM tickless_groups`
	findGroup   = allGroups + ` WHERE name = ?`
	firstGroups = allGroups + ` WHERE until <= ? ORDER BY until LIMIT ?`
	getNumbers  = `SELECT '', numbers, version, wakes, sum FROM tickless_numbers`

	putSenders  = `INSERT OR FAIL INTO tickless_senders (name, sender, seen, worker, sum) VALUES ROWS ON CONFLICT (name) DO UPDATE SET seen = excluded.seen, worker = excluded.worker, sender = excluded.sender, sum = excluded.sum`
	dropSenders = `DELETE FROM tickless_senders WHERE name IN ROWS`
	goneSenders = `SELECT name FROM (SELECT name, seen FROM tickless_senders WHERE name > ? ORDER BY name LIMIT 64) WHERE seen < ? LIMIT +?`
	putLimit    = `INSERT INTO tickless_limits (handler, used, sum) VALUES (?, ?, ?) ON CONFLICT (handler) DO UPDATE SET used = excluded.used, sum = excluded.sum`
	dropLimit   = `DELETE FROM tickless_limits WHERE handler = ?`
	putGroup    = `INSERT INTO tickless_groups (name, used, until, sum) VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET used = excluded.used, until = excluded.until, sum = excluded.sum`
	dropGroup   = `DELETE FROM tickless_groups WHERE name = ?`
	putNumbers  = `UPDATE tickless_numbers SET wakes = ?, numbers = ?, sum = ?`
	getVersion  = `PRAGMA data_version`
	getSchema   = `SELECT version FROM tickless_numbers`
	getWakes    = `SELECT wakes FROM tickless_numbers`
)

// tablesVersion returns the version of the Store's tables, or 0 if there are none. It
// returns an error for another version than the present and the one before, and if other
// tables have the same names.
func tablesVersion(ctx context.Context, conn *sql.Conn) (v int64, err error) {
	var n int
	err = conn.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE name IN ('tickless_tasks', 'tickless_senders', 'tickless_numbers')`).Scan(&n)
	if err != nil || n == 0 {
		return 0, err
	}
	wrapTableError := func(err error) error {
		if isBusyError(err) {
			return err
		}
		return fmt.Errorf("%w: other tables have names that begin with tickless_: %w", store.ErrSchema, err)
	}
	if err = conn.QueryRowContext(ctx, getSchema).Scan(&v); err != nil {
		return 0, wrapTableError(err)
	}
	if v == schemaVersion-1 {
		return v, nil
	}
	if err := checkSchemaVersion(v); err != nil {
		return 0, err
	}
	for _, query := range []string{statement{findTasks, 1, 1}.String(), onIndex(false, kindHeads), runTasks, statement{findSenders, 1, 1}.String(), getNumbers, getWakes} {
		stmt, err := conn.PrepareContext(ctx, query)
		if err != nil {
			return 0, wrapTableError(err)
		}
		_ = stmt.Close()
	}
	return v, nil
}

func checkSchemaVersion(v int64) error {
	if v != schemaVersion {
		return fmt.Errorf("%w: its tables have version %d, but this program supports version %d", store.ErrSchema, v, schemaVersion)
	}
	return nil
}

// upgradeTables creates the tables in a transaction, or upgrades those of the version
// before. A Store of an older version of this package reads the version in each
// transaction, so its next call returns store.ErrSchema.
func upgradeTables(ctx context.Context, conn *sql.Conn) (err error) {
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		end := "COMMIT"
		if err != nil {
			end = "ROLLBACK"
		}
		if _, endErr := conn.ExecContext(ctx, end); err == nil {
			err = endErr
		}
	}()
	v, err := tablesVersion(ctx, conn) // another process may have created or upgraded them
	if err != nil || v == schemaVersion {
		return err
	}
	statements := upgradeSchema
	if v == 0 {
		statements = schema
	}
	if _, err := conn.ExecContext(ctx, statements); err != nil {
		return err
	}
	return upgradeRows(conn)
}

// upgradeRows sets the version, and the checksums of the small tables.
func upgradeRows(conn *sql.Conn) (err error) {
	defer batch.Recover(&err)
	x := newSession(conn)
	defer x.close()
	x.exec(`UPDATE tickless_numbers SET version = ?`, schemaVersion)
	for _, table := range []struct{ selectRows, setSum string }{
		{allSenders, `UPDATE tickless_senders SET sum = ? WHERE name = ?`},
		{getLimits, `UPDATE tickless_limits SET sum = ? WHERE handler = ?`},
		{getNumbers, `UPDATE tickless_numbers SET sum = ? WHERE '' = ?`},
	} {
		var rows []smallRow
		x.queryRows(table.selectRows, nil, func(r *sql.Rows) { rows = append(rows, scanSmallRow(r)) })
		for _, r := range rows {
			x.exec(table.setSum, r.checksum(), r.name)
		}
	}
	return nil
}
