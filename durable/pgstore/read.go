package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/machine"
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
	defer recoverFailure(&err)
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
	pagePending = listKinds + ` SELECT ` + taskColumns + ` FROM (SELECT k.* FROM k CROSS JOIN LATERAL (SELECT at, id FROM tickless.tasks t WHERE ` + pageOfKinds + `1) f
			WHERE $8 = '' OR k.handler = $8 ORDER BY f.at, f.id LIMIT $2) k
		CROSS JOIN LATERAL (SELECT t.ctid, t.* FROM tickless.tasks t WHERE ` + pageOfKinds + `$2) t ORDER BY t.at, t.id LIMIT $2`
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

// maxSteps is how many queries List makes for a page. With an Error or a Group, rows that do
// not match also count for a query's limit, so that a page may have fewer entries.
const maxSteps = 16

// List returns a page. A page by Prefix also reads entries with the prefix that it skips. A
// page by Error also reads entries with other failures, and a page by Group those of other
// groups.
func (s *Store) List(ctx context.Context, shard int, f store.Filter, c store.Cursor, limit int) (p store.Page, err error) {
	if err := store.CheckList(&f, limit); err != nil {
		return p, err
	}
	err = s.read(ctx, shard, nil, func(ix *index) {
		p = store.Page{}
		for range maxSteps {
			found := ix.page(&f, c, limit+1)
			for _, x := range found {
				if len(p.Entries) == limit {
					p.Next = f.CursorOf(&p.Entries[limit-1])
					return
				}
				c = f.CursorOf(&x.Entry)
				if f.Match(&x.Entry) && !x.HasExpired(ix.now.Wall) {
					p.Entries = append(p.Entries, x.Entry)
					ix.notePause(&p.Entries[len(p.Entries)-1])
				}
			}
			if len(found) <= limit {
				return
			}
		}
		p.Next = c
	})
	return p, err
}

// page returns the first n tasks after the cursor that match the filter, except for its
// Error and Group.
func (ix *index) page(f *store.Filter, c store.Cursor, n int) (found []*cachedTask) {
	from := f.From
	read := func(query string, args ...any) {
		ix.queryNow(func(rows pgx.Rows) { found = append(found, scanTask(rows)) }, query,
			append([]any{ix.shard, n - len(found), int64(c.At), encodeID(c.ID), int64(from), int64(cmp.Or(f.To, machine.Never)), int16(f.State), f.Handler}, args...)...)
	}
	if f.Runs {
		digits := func(t store.Time) []byte { return fmt.Appendf(nil, "%016d", t) }
		after := []byte("~") // after all times
		if c != (store.Cursor{}) {
			after = digits(c.At)
		}
		read(pageRuns, after, digits(f.From), digits(cmp.Or(f.To, store.Farthest)))
		return found
	}
	if f.Prefix != "" {
		prefix := encodeID(f.Prefix)
		read(pagePrefix, prefix, prefixEnd(prefix))
		return found
	}
	// readAll merges the results of several queries.
	readAll := func(queries ...func()) {
		var merged []*cachedTask
		count := len(found)
		for _, q := range queries {
			q()
			merged = append(merged, found[count:]...)
			found = found[:count]
		}
		slices.SortFunc(merged, func(a, b *cachedTask) int { return f.CursorOf(&a.Entry).Compare(f.CursorOf(&b.Entry)) })
		found = append(found, merged[:min(n-count, len(merged))]...)
	}
	for state := max(store.Pending, c.State); state <= store.Past && len(found) < n; state++ {
		if state > c.State {
			c = store.Cursor{State: state, At: -1}
		}
		if state == store.Past {
			from = max(from, ix.now.Wall+1) // others have expired
		}
		switch {
		case f.State != 0 && f.State != state:
		case (f.Error != "" || f.Paused) && state > store.Pending:
			read(pageMore, int16(state))
		case f.Error != "" || f.Paused:
			readAll(func() { read(pageMore, int16(state)) }, func() { read(pageMore, int16(pendingPaused)) }, func() { read(pageMore, int16(parked)) })
		case state == store.Pending:
			readAll(func() { read(pagePending) }, func() { read(pageSuspects) }, func() { read(pageRest, int16(pendingPaused)) }, func() { read(pageRest, int16(parked)) })
		default:
			read(pageRest, int16(state))
		}
	}
	return found
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
	err = s.shards[shard].calls.Do(ctx, &call{Run: func(ix *index) error {
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
	err = s.pool.QueryRow(ctx, `SELECT current_setting('server_version'), current_setting('synchronous_commit'), current_setting('fsync'),
		current_setting('full_page_writes'), current_setting('transaction_read_only')`).Scan(&version, &synchronous, &fsync, &fullPages, &readOnly)
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
	return h, nil
}
