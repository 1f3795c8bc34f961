package stores

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver
)

// table keeps tasks in an SQLite table. One goroutine does all writing. It puts all waiting
// requests into one transaction, so that many callers share one sync to disk.
type table struct {
	db         *sql.DB
	conn       *sql.Conn
	requests   chan *request
	ended      chan struct{}
	insert     *sql.Stmt
	insertMany *sql.Stmt // inserts rowsAtOnce tasks
	claim      *sql.Stmt
	next       *sql.Stmt
	finish     *sql.Stmt
	token      int64
	wake       chan struct{} // signals a task that is due before nextDue
	nextDue    int64         // until when the worker sleeps, in microseconds; owned by write
}

// A request is what one caller wants done in the next transaction.
type request struct {
	insert []task
	finish []claimedTask // handled tasks to delete
	claim  int           // how many tasks to claim at most
	done   chan error

	claimed []claimedTask // result
	next    int64         // result: when the next task is due, in microseconds; 0 if there is none
}

type claimedTask struct {
	row, token int64
	body       []byte
}

const schema = `
	CREATE TABLE IF NOT EXISTS tasks (
		id       INTEGER PRIMARY KEY,
		key      TEXT NOT NULL UNIQUE,
		due      INTEGER NOT NULL,
		lease    INTEGER,
		token    INTEGER NOT NULL DEFAULT 0,
		attempts INTEGER NOT NULL DEFAULT 0,
		handler  TEXT NOT NULL,
		body     BLOB
	);
	CREATE INDEX IF NOT EXISTS pending ON tasks (due) WHERE lease IS NULL;
	CREATE INDEX IF NOT EXISTS running ON tasks (lease) WHERE lease IS NOT NULL;`

// rowsAtOnce is how many tasks the statement insertMany inserts.
const rowsAtOnce = 50

func insertion(n int) string {
	return `INSERT INTO tasks (key, due, handler, body) VALUES ` + strings.Repeat(`(?, ?, 'h', ?), `, n-1) + `(?, ?, 'h', ?)
		ON CONFLICT (key) DO UPDATE SET due = excluded.due, handler = excluded.handler, body = excluded.body, attempts = 0`
}

func openTable(_ testing.TB, dir string) (side, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "tasks.db")+
		"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=cache_size(-16384)&_pragma=wal_autocheckpoint(10000)")
	if err != nil {
		return nil, err
	}
	x := &table{db: db, requests: make(chan *request, 1024), ended: make(chan struct{}), wake: make(chan struct{}, 1)}
	ctx := context.Background()
	if x.conn, err = db.Conn(ctx); err != nil {
		return nil, err
	}
	if _, err := x.conn.ExecContext(ctx, schema); err != nil {
		return nil, err
	}
	for _, p := range []struct {
		to    **sql.Stmt
		query string
	}{
		{&x.insert, insertion(1)},
		{&x.insertMany, insertion(rowsAtOnce)},
		{&x.claim, `UPDATE tasks SET lease = ?1, token = ?2, attempts = attempts + 1 WHERE id IN
			(SELECT id FROM tasks WHERE lease IS NULL AND due <= ?3 ORDER BY due LIMIT ?4) RETURNING id, body`},
		{&x.next, `SELECT min(due) FROM tasks WHERE lease IS NULL`},
		{&x.finish, `DELETE FROM tasks WHERE id = ? AND token = ?`},
	} {
		if *p.to, err = x.conn.PrepareContext(ctx, p.query); err != nil {
			return nil, fmt.Errorf("%w: %s", err, p.query)
		}
	}
	go x.write()
	return x, nil
}

// write is the writing goroutine. It carries out requests until the channel is closed.
func (x *table) write() {
	defer close(x.ended)
	for r := range x.requests {
		group, n := []*request{r}, len(r.insert)
		for more := true; more && n < 10_000; {
			select {
			case r, ok := <-x.requests:
				if more = ok; ok {
					group, n = append(group, r), n+len(r.insert)
				}
			default:
				more = false
			}
		}
		err := x.transaction(group)
		for _, r := range group {
			r.done <- err
		}
	}
}

func (x *table) transaction(group []*request) (err error) {
	ctx := context.Background()
	if _, err := x.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for _, r := range group {
		if err = x.carryOut(ctx, r); err != nil {
			_, _ = x.conn.ExecContext(ctx, "ROLLBACK")
			return err
		}
	}
	_, err = x.conn.ExecContext(ctx, "COMMIT")
	return err
}

func (x *table) carryOut(ctx context.Context, r *request) error {
	for tasks := range slices.Chunk(r.insert, rowsAtOnce) {
		if len(tasks) == rowsAtOnce {
			if err := x.put(ctx, x.insertMany, tasks); err != nil {
				return err
			}
			continue
		}
		for i := range tasks {
			if err := x.put(ctx, x.insert, tasks[i:i+1]); err != nil {
				return err
			}
		}
	}
	for _, h := range r.finish {
		if _, err := x.finish.ExecContext(ctx, h.row, h.token); err != nil {
			return err
		}
	}
	if r.claim == 0 {
		return nil
	}
	x.token++
	now := time.Now()
	rows, err := x.claim.QueryContext(ctx, now.Add(30*time.Second).UnixMicro(), x.token, now.UnixMicro(), r.claim)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		h := claimedTask{token: x.token}
		if err := rows.Scan(&h.row, &h.body); err != nil {
			return err
		}
		r.claimed = append(r.claimed, h)
	}
	if err := rows.Err(); err != nil || len(r.claimed) == r.claim {
		return err
	}
	var next sql.NullInt64
	err = x.next.QueryRowContext(ctx).Scan(&next)
	r.next, x.nextDue = next.Int64, next.Int64
	if !next.Valid {
		x.nextDue = 1 << 62
	}
	return err
}

// put runs a statement that inserts tasks. It wakes the worker if a task is due before the
// worker would wake up.
func (x *table) put(ctx context.Context, stmt *sql.Stmt, tasks []task) error {
	args := make([]any, 0, 3*rowsAtOnce)
	first := int64(math.MaxInt64)
	for i := range tasks {
		t := &tasks[i]
		due := t.due.UnixMicro()
		first = min(first, due)
		args = append(args, t.key, due, t.body)
	}
	if first < x.nextDue {
		x.nextDue = first
		select {
		case x.wake <- struct{}{}:
		default:
		}
	}
	_, err := stmt.ExecContext(ctx, args...)
	return err
}

func (x *table) do(ctx context.Context, r *request) error {
	r.done = make(chan error, 1)
	select {
	case x.requests <- r:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (x *table) schedule(ctx context.Context, tasks []task) error {
	return x.do(ctx, &request{insert: tasks})
}

// work claims a batch of tasks, handles it, then claims the next batch. Each claim also
// deletes the previous batch.
func (x *table) work(handle func(body []byte)) (func() error, error) {
	const claim = 100
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		var handled []claimedTask
		for {
			r := &request{finish: handled, claim: claim}
			if err := x.do(ctx, r); err != nil {
				ended <- err
				return
			}
			for _, h := range r.claimed {
				handle(h.body)
			}
			if handled = r.claimed; len(handled) > 0 {
				continue
			}
			wait := time.Hour
			if r.next > 0 {
				wait = time.Until(time.UnixMicro(r.next))
			}
			select {
			case <-time.After(wait):
			case <-x.wake:
			case <-ctx.Done():
			}
		}
	}()
	return func() error {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}, nil
}

func (x *table) remaining(ctx context.Context) (n int64, err error) {
	err = x.db.QueryRowContext(ctx, "SELECT count(*) FROM tasks").Scan(&n)
	return n, err
}

func (x *table) close() error {
	close(x.requests)
	<-x.ended
	return errors.Join(x.conn.Close(), x.db.Close())
}
