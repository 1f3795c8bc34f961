package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/batch"
	"github.com/tickless/tickless/durable/store/machine"
	"github.com/tickless/tickless/durable/store/pages"
)

// read calls f in a transaction that only reads, so that f sees a consistent state. Before
// that, it drains the shard's inbox and reads tasks.
func (s *Store) read(ctx context.Context, shard int, taskIDs []string, f func(ix *index)) error {
	if err := s.checkOpen(ctx); err != nil {
		return err
	}
	for drains := true; ; {
		hasInbox, err := s.tryRead(ctx, shard, taskIDs, f, drains)
		if err != nil || !hasInbox {
			return s.readError(ctx, err)
		}
		// What comes into the inbox after that is later than this call.
		drains, err = s.drain(ctx, s.shards[shard])
		if err != nil && !errors.Is(err, ErrReadOnly) {
			return err
		}
	}
}

// tryRead returns true and does not call f if it should drain the inbox first.
func (s *Store) tryRead(ctx context.Context, shard int, taskIDs []string, f func(ix *index), drains bool) (hasInbox bool, err error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer release(conn)
	defer batch.Recover(&err)
	ix := newIndex(ctx, conn, s, s.shards[shard], new(memory))
	var b pgx.Batch
	b.Queue(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`)
	b.Queue(`SELECT ` + fixPlans)
	ix.loadDocuments(&b, nil)
	ix.loadTasks(&b, taskIDs)
	ix.send(&b)
	if ix.hasInbox && drains {
		return true, nil
	}
	f(ix)
	return false, nil
}

// Get returns a task's entry, or [store.ErrNotFound].
func (s *Store) Get(ctx context.Context, shard int, id string) (e store.Entry, err error) {
	err = store.ErrNotFound
	readErr := s.read(ctx, shard, []string{id}, func(ix *index) {
		if t := ix.Find(id); t != nil && !t.HasExpired(ix.now.Wall) {
			e, err = t.Entry, nil
			ix.notePause(&e)
		}
	})
	return e, cmp.Or(readErr, err)
}

func (ix *index) notePause(e *store.Entry) {
	if ix.numbers.Limits > 0 {
		machine.NotePause(e, ix.Limits())
	}
}

const (
	// listKinds selects the pairs of a handler and a schedule of the pending tasks.
	listKinds = `WITH RECURSIVE k AS (
		(SELECT handler, schedule FROM tickless.tasks WHERE shard = $1 AND state = 1 AND NOT suspect ORDER BY handler, schedule LIMIT 1)
		UNION ALL SELECT n.* FROM k CROSS JOIN LATERAL (SELECT handler, schedule FROM tickless.tasks
			WHERE shard = $1 AND state = 1 AND NOT suspect AND (handler, schedule) > (k.handler, k.schedule) ORDER BY handler, schedule LIMIT 1) n)`
	countDue = listKinds + ` SELECT k.handler, k.schedule, c.count, c.min FROM k
		CROSS JOIN LATERAL (SELECT count(*), min(at) FROM tickless.tasks WHERE shard = $1 AND state = 1 AND NOT suspect AND handler = k.handler AND schedule = k.schedule AND at <= $2) c
		WHERE c.count > 0
		UNION ALL SELECT handler, schedule, count(*), min(at) FROM tickless.tasks WHERE shard = $1 AND state = 1 AND suspect AND at <= $2 GROUP BY handler, schedule
		UNION ALL SELECT handler, schedule, count(*), min(at) FROM tickless.tasks WHERE shard = $1 AND state > 1 AND state = 9 AND at <= $2 GROUP BY handler, schedule`
	countStates = `SELECT state, count(*) FROM tickless.tasks WHERE shard = $1 GROUP BY state`

	// The queries for a page have the parameters shard, limit, cursor's time and id, from,
	// to, state, handler.
	pageFilter  = ` t.shard = $1 AND (t.at, t.id) > ($3, $4) AND t.at >= $5 AND t.at < $6 AND ($7 = 0 OR t.state = $7 OR $7 = 1 AND t.state IN (6, 9)) AND ($8 = '' OR t.handler = $8)`
	pageOfKinds = `t.state = 1 AND NOT t.suspect AND t.handler = k.handler AND t.schedule = k.schedule AND ` + pageFilter + ` ORDER BY t.at, t.id LIMIT `
	// pagePending reads only from the pairs whose first tasks are among the first.
	pagePending = listKinds + ` SELECT t.* FROM (SELECT k.* FROM k CROSS JOIN LATERAL (SELECT at, id FROM tickless.tasks t WHERE ` + pageOfKinds + `1) f
			WHERE $8 = '' OR k.handler = $8 ORDER BY f.at, f.id LIMIT $2) k
		CROSS JOIN LATERAL (SELECT ` + taskColumns + ` FROM tickless.tasks t WHERE ` + pageOfKinds + `$2) t ORDER BY t.at, t.id LIMIT $2`
	pageRest = `SELECT ` + taskColumns + ` FROM tickless.tasks t WHERE t.state > 1 AND t.state = $9 AND ` + pageFilter + ` ORDER BY t.at, t.id LIMIT $2`
	pageMore = `SELECT ` + taskColumns + ` FROM tickless.tasks t WHERE t.more IS NOT NULL AND t.state = $9 AND ` + pageFilter + ` ORDER BY t.at, t.id LIMIT $2`
	pageRuns = `SELECT ` + taskColumns + ` FROM tickless.tasks t WHERE t.state = 4 AND length(t.record) > 16 AND t.shard = $1
		AND (substr(t.record, 2, 16), t.id) < ($9::bytea, $4) AND substr(t.record, 2, 16) >= $10::bytea AND substr(t.record, 2, 16) < $11::bytea
		AND $3::bigint IS NOT NULL AND $5::bigint IS NOT NULL AND $6::bigint IS NOT NULL AND ($7 = 0 OR t.state = $7) AND ($8 = '' OR t.handler = $8)
		ORDER BY substr(t.record, 2, 16) DESC, t.id DESC LIMIT $2`
	pagePrefix = `SELECT ` + taskColumns + ` FROM tickless.tasks t WHERE t.shard = $1 AND t.id > $4 AND t.id >= $9 AND t.id < $10 AND $3::bigint = 0
		AND t.at >= $5 AND t.at < $6 AND ($7 = 0 OR t.state = $7 OR $7 = 1 AND t.state IN (6, 9)) AND ($8 = '' OR t.handler = $8) ORDER BY t.id LIMIT $2`
	pageSuspects = `SELECT ` + taskColumns + ` FROM tickless.tasks t WHERE t.state = 1 AND t.suspect AND ` + pageFilter + ` ORDER BY t.at, t.id LIMIT $2`
)

// maxSteps is how often List reads entries for a page. Entries that do not match also count
// for a query's limit, so a page by Error or Group may have fewer entries.
const maxSteps = 16

// List returns a page. A page by Prefix also reads entries with the prefix that it skips. A
// page by Error also reads entries with other failures, and a page by Group those of other
// groups.
func (s *Store) List(ctx context.Context, shard int, f store.Filter, c store.Cursor, limit int) (p store.Page, err error) {
	if err := store.CheckList(&f, limit); err != nil {
		return p, err
	}
	err = s.read(ctx, shard, nil, func(ix *index) {
		p = store.Page{Next: c}
		for range maxSteps {
			var found []*cachedTask
			found, p.Next = pages.List(&f, p.Next, limit-len(p.Entries), ix.now.Wall, []int64{int64(store.Pending), suspects, pendingPaused, parked},
				func(x *cachedTask) *store.Entry { return &x.Entry }, ix.readPage)
			for _, x := range found {
				ix.notePause(&x.Entry)
				p.Entries = append(p.Entries, x.Entry)
			}
			if len(p.Entries) == limit || p.Next == (store.Cursor{}) {
				return
			}
		}
	})
	return p, err
}

// readPage returns the tasks of a query.
func (ix *index) readPage(q *pages.Query) (found []*cachedTask, next store.Cursor) {
	statement, args := pageRest, []any{q.ColumnState}
	switch digits := func(t store.Time) []byte { return fmt.Appendf(nil, "%016d", t) }; {
	case q.Order == pages.ByEnd:
		after := []byte("~") // after all times
		if q.After != (store.Cursor{}) {
			after = digits(q.After.At)
		}
		statement, args = pageRuns, []any{after, digits(q.From), digits(cmp.Or(q.To, store.Farthest))}
	case q.Order == pages.ByID:
		prefix := encodeID(q.Prefix)
		statement, args = pagePrefix, []any{prefix, prefixEnd(prefix)}
	case q.Order == pages.Noted && q.ColumnState == suspects:
		return nil, next // they are among those with state 1
	case q.Order == pages.Noted:
		statement = pageMore
	case q.ColumnState == suspects:
		statement, args = pageSuspects, nil
	case q.ColumnState == int64(store.Pending):
		statement, args = pagePending, nil
	}
	args = append([]any{ix.shard, q.Limit, int64(q.After.At), encodeID(q.After.ID), int64(q.From), int64(cmp.Or(q.To, machine.Never)), int16(q.State), encodeID(q.Handler)}, args...)
	count := 0
	ix.queryNow(func(rows pgx.Rows) {
		x := scanTask(rows)
		if count++; count == q.Limit {
			next = q.CursorOf(&x.Entry)
		}
		if q.Match(&x.Entry) && !x.HasExpired(ix.now.Wall) {
			found = append(found, x)
		}
	}, statement, args...)
	return found, next
}

// prefixEnd returns a text that comes after all ids with the prefix, and before all others.
func prefixEnd(prefix string) string {
	for prefix != "" {
		r, size := utf8.DecodeLastRuneInString(prefix)
		prefix = prefix[:len(prefix)-size]
		if r++; r >= 0xd800 && r < 0xe000 {
			r = 0xe000 // the runes before are not valid in UTF-8
		}
		if r <= utf8.MaxRune {
			return prefix + string(r)
		}
	}
	return strings.Repeat(string(utf8.MaxRune), store.MaxID)
}

// Stats returns the shard's numbers. Its cost grows with the number of overdue tasks.
func (s *Store) Stats(ctx context.Context, shard int) (st store.Stats, err error) {
	err = s.read(ctx, shard, nil, func(ix *index) { st = machine.Stats(ix, ix.now.Wall) })
	return st, err
}

// Workers returns the shard's workers.
func (s *Store) Workers(ctx context.Context, shard int) (workers []store.Worker, err error) {
	err = s.read(ctx, shard, nil, func(ix *index) { workers = machine.Workers(ix, ix.now.Wall) })
	return workers, err
}

// Repair counts all tasks. If another program has changed the tables, Repair corrects the
// numbers and the limits' counts of running tasks.
func (s *Store) Repair(ctx context.Context, shard int) (r store.Repair, err error) {
	var wrong bool
	var missing [store.Past + 1]int64
	err = s.read(ctx, shard, nil, func(ix *index) {
		n := &ix.numbers
		r, missing = store.Repair{}, [...]int64{0, -n.Pending, -n.Running, -n.Dead, -n.Past}
		ix.queryNow(func(rows pgx.Rows) {
			var state uint8
			var count int64
			must(rows.Scan(&state, &count))
			if state == pendingPaused || state == parked {
				state = uint8(store.Pending)
			}
			if int(state) < len(missing) {
				missing[state] += count
			}
			r.Looked += count
		}, countStates, ix.shard)
		wrong = machine.Recount(ix)
	})
	if err != nil || missing == [store.Past + 1]int64{} && !wrong {
		return r, err
	}
	err = s.shards[shard].calls.Call(ctx, &call{Run: func(ix *index) error {
		n := &ix.numbers
		n.Pending += missing[store.Pending]
		n.Running += missing[store.Running]
		n.Dead += missing[store.Dead]
		n.Past += missing[store.Past]
		machine.Recount(ix)
		return nil
	}})
	return r, err
}

// Check reports whether the database can be used, and how safely it keeps tasks.
func (s *Store) Check(ctx context.Context) (h store.Health, err error) {
	if err := s.checkOpen(ctx); err != nil {
		return h, err
	}
	var version, synchronous, fsync, fullPages, readOnly string
	var hasStrays bool
	err = s.pool.QueryRow(ctx, s.sql(`SELECT current_setting('server_version'), current_setting('synchronous_commit'), current_setting('fsync'),
		current_setting('full_page_writes'), current_setting('transaction_read_only'), EXISTS (SELECT FROM tickless.inbox WHERE shard >= $1)`), len(s.shards)).
		Scan(&version, &synchronous, &fsync, &fullPages, &readOnly, &hasStrays)
	if err != nil {
		return h, s.readError(ctx, err)
	}
	h.Store = fmt.Sprintf("PostgreSQL %s, schema %s", version, s.schema)
	warn := func(bad bool, text string) {
		if bad {
			h.Warnings = append(h.Warnings, text)
		}
	}
	warn(synchronous == "off", "synchronous_commit is off: a crash of the server may lose the latest commands")
	warn(fsync == "off", "fsync is off: a crash of the server's host may lose or damage all tasks")
	warn(fsync == "on" && fullPages == "off", "full_page_writes is off: a crash of the server's host may damage tasks")
	warn(readOnly == "on", "the server is read-only: no command is carried out")
	warn(hasStrays, "the inbox has tasks for shards that do not exist, which never run: a program calls ScheduleTx with more shards than the store has")
	return h, nil
}
