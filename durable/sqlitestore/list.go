package sqlitestore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/machine"
	"github.com/tickless/tickless/durable/store/pages"
)

// List returns a page. Each page has its own transaction, because a long transaction
// prevents the log from being reused.
//
// A page also reads the entries that it skips, up to maxScanned. With a Prefix these are
// only entries with the prefix. With an Error they are only entries with failures.
func (s *Store) List(ctx context.Context, _ int, f store.Filter, c store.Cursor, limit int) (p store.Page, err error) {
	if err := store.CheckList(&f, limit); err != nil {
		return p, err
	}
	err = s.runReadTx(ctx, func(x *session) {
		p = store.Page{}
		now := s.readClocks().Wall
		states := []int64{int64(store.Pending), pendingSuspect, pendingPaused, parked, parkedSuspect}
		var tasks []*cachedTask
		tasks, p.Next = pages.List(&f, c, limit, now, states, func(t *cachedTask) *store.Entry { return &t.Entry }, func(q *pages.Query) ([]*cachedTask, store.Cursor) { return x.readPage(q, now) })
		limits := (&index{session: x}).Limits()
		for _, t := range tasks {
			machine.NotePause(&t.Entry, limits)
			if t.err != nil {
				t.Entry = store.Entry{Task: store.Task{ID: t.ID}, State: t.State, At: t.At, Damaged: true}
			}
			p.Entries = append(p.Entries, t.Entry)
		}
	})
	return p, err
}

// readPage returns the tasks of a query.
func (x *session) readPage(q *pages.Query, now store.Time) (found []*cachedTask, next store.Cursor) {
	read := func(o listOrder, args ...any) ([]*cachedTask, store.Cursor) {
		return x.readOrdered(o, q, int64(q.After.At), int64(max(q.From, q.After.At)), int64(cmp.Or(q.To, machine.Never)), now, args...)
	}
	switch {
	case q.Order == pages.ByEnd:
		after, to := store.Farthest, cmp.Or(q.To, store.Farthest)
		if q.After != (store.Cursor{}) {
			after, to = q.After.At, min(to, q.After.At+1)
		}
		text := func(t store.Time) []byte { return fmt.Appendf(nil, "%016d", t) }
		return x.readOrdered(runsByEnd, q, text(after), text(q.From), text(to), now)
	case q.Order == pages.ByID:
		return x.readOrdered(tasksByID, q, q.After.ID, max(q.Prefix, q.After.ID), firstAfterPrefix(q.Prefix), now)
	case q.Order == pages.Noted:
		return read(notedByTime, q.ColumnState)
	case q.ColumnState != int64(store.Pending):
		return read(othersByTime, q.ColumnState)
	}
	to := q.To
	kinds := x.pageKinds(q)
	if found, next = read(pendingByTime, encodeJSON(kinds)); next == (store.Cursor{}) && q.To != to {
		next = store.Cursor{State: store.Pending, At: q.To} // if not all of these match
	}
	return found, next
}

// A listOrder is the order of a list. A position in the list is the value of column, and an
// id. tables are what an index reads in this order, or less than maxScanned entries, as t.
type listOrder struct {
	tables, condition, column string
	backwards                 bool
}

// inKinds are the kinds of some tasks: the parameter is a JSON list of their rowids.
const inKinds = `json_each(?5) k CROSS JOIN tickless_tasks f ON f.rowid = k.value CROSS JOIN `

var (
	pendingByTime = listOrder{inKinds + "tickless_tasks t INDEXED BY tickless_due", "t.state = 1 AND t.handler = f.handler AND t.schedule = f.schedule", "t.at", false}
	othersByTime  = listOrder{"tickless_tasks t INDEXED BY tickless_rest", "t.state > 1 AND t.state = ?5", "t.at", false}
	notedByTime   = listOrder{"tickless_tasks t INDEXED BY tickless_more", "t.more IS NOT NULL AND t.state = ?5", "t.at", false}
	runsByEnd     = listOrder{"tickless_tasks t INDEXED BY tickless_ended", "t.state = 4 AND length(t.record) > 16", "substr(t.record, 2, 16)", true}
	tasksByID     = listOrder{"tickless_tasks t INDEXED BY sqlite_autoindex_tickless_tasks_1", "1", "t.id", false}
)

// maxScanned is how many entries a page looks at that do not match the filter.
const maxScanned = 10_000

// readOrdered returns the tasks of a query, with values of the column from from to to, in an
// order. They come after the query's cursor, whose value of the column is after; from or, if
// the order is backwards, to must not be before it, because SQLite begins to read there. args
// are the parameters of the order. It leaves out what has expired at now. If there are more
// than maxScanned entries, next is the position after those.
func (x *session) readOrdered(o listOrder, f *pages.Query, after, from, to any, now store.Time, args ...any) (found []*cachedTask, next store.Cursor) {
	direction, further := "", ">"
	if o.backwards {
		direction, further = " DESC", "<"
	}
	args = append([]any{after, f.After.ID, from, to}, args...)
	ordered := fmt.Sprintf(` FROM %s WHERE %s AND (%s %s ?1 OR t.id %[4]s ?2) AND %[3]s >= ?3 AND %[3]s < ?4 ORDER BY %[3]s%[5]s, t.id%[5]s`,
		o.tables, o.condition, o.column, further, direction)
	k := len(args)
	atFrom, atTo := f.From, cmp.Or(f.To, machine.Never)
	prefix := ""
	if f.Runs {
		atFrom, atTo, prefix = 0, machine.Never, f.Prefix
	}
	all := append(slices.Clip(args), int64(f.State), f.Handler, f.Group, f.Error, int64(f.DueFrom), int64(cmp.Or(f.DueTo, machine.Never)), int64(atFrom), int64(atTo), prefix, f.Limit, int64(now), f.Paused)
	// The inner query finds entries in order, and the outer one reads those that match.
	x.queryRows(fmt.Sprintf(`SELECT t.`+strings.ReplaceAll(taskColumns, ", ", ", t.")+`
		FROM (SELECT t.rowid AS r, t.state, t.handler, t.more, t.due, t.at, t.id, t.grp%[1]s LIMIT %[2]d) i CROSS JOIN tickless_tasks t ON t.rowid = i.r
		WHERE (i.state <> 4 OR i.at > ?%[13]d) AND (?%[3]d = 0 OR i.state = ?%[3]d OR ?%[3]d = 1 AND i.state IN (5, 6, 9, 13)) AND (?%[4]d = '' OR i.handler = ?%[4]d)
		AND (?%[5]d = '' OR i.grp = ?%[5]d)
		AND (?%[6]d = '' OR json_valid(i.more) AND instr(json_extract(i.more, '$.failures[#-1].Text'), ?%[6]d) > 0)
		AND i.due >= ?%[7]d AND i.due < ?%[8]d AND i.at >= ?%[9]d AND i.at < ?%[10]d AND substr(i.id, 1, length(?%[11]d)) = ?%[11]d
		AND (NOT ?%[14]d OR json_valid(i.more) AND json_extract(i.more, '$.paused')) LIMIT +?%[12]d`,
		ordered, maxScanned, k+1, k+2, k+3, k+4, k+5, k+6, k+7, k+8, k+9, k+10, k+11, k+12), all, func(rows *sql.Rows) { found = append(found, scanTask(rows)) })
	matchesAll := !f.Runs && f.Prefix == "" && f.Handler == "" && f.Group == "" && f.Error == "" && !f.Paused && f.DueFrom == 0 && f.DueTo == 0
	if len(found) == f.Limit || matchesAll {
		return found, next
	}
	var value any
	if x.queryRow(fmt.Sprintf(`SELECT %s, t.id%s LIMIT 1 OFFSET %d`, o.column, ordered, maxScanned-1), args, &value, &next.ID) {
		switch value := value.(type) {
		case int64:
			next.State, next.At = f.After.State, store.Time(value)
		case []byte:
			ended, _ := strconv.ParseInt(string(value), 10, 64)
			next.State, next.At = store.Past, store.Time(ended)
		}
	}
	return found, next
}

// A listedKind is a kind with tasks that may be on a page.
type listedKind struct {
	row   int64        // the rowid of its first task
	times []store.Time // when its first tasks are due, in order
	limit int          // how many times were read at most
}

const (
	listKinds = `WITH RECURSIVE handlers(name) AS (` + pendingHandlers + `), k(h, s) AS (` + kindsOfHandlers + `)
		SELECT t.rowid, t.at FROM k CROSS JOIN tickless_tasks t
		ON t.rowid = (SELECT rowid FROM %[1]s AND handler = h AND schedule = s AND at >= ?3 AND at < ?4 ORDER BY at LIMIT 1) WHERE s IS NOT NULL`
	firstTimes = `SELECT k.key, t.at FROM json_each(?1) k CROSS JOIN tickless_tasks f ON f.rowid = k.value CROSS JOIN tickless_tasks t
		ON t.rowid IN (SELECT rowid FROM %s AND handler = f.handler AND schedule = f.schedule AND at >= ?2 AND at < ?3 ORDER BY at LIMIT +?4)`
)

// pageKinds returns a task of each kind that has tasks on the query's page. It sets the
// query's To to the end of a period, from its cursor on, in which enough tasks are due, or few
// more. So a page costs O(log n) for each kind that is pending, and for each of its tasks.
func (x *session) pageKinds(q *pages.Query) []int64 {
	var kinds []*listedKind
	lastHandler := firstAfterPrefix(q.Handler)
	if q.Handler != "" {
		lastHandler = q.Handler
	}
	n, from, to := q.Limit, int64(max(q.From, q.After.At)), cmp.Or(q.To, machine.Never)
	x.queryRows(onIndex(false, listKinds), []any{q.Handler, lastHandler, from, int64(to)}, func(rows *sql.Rows) {
		k := &listedKind{times: make([]store.Time, 1), limit: 1}
		must(rows.Scan(&k.row, &k.times[0]))
		kinds = append(kinds, k)
	})
	end := to
	for limit := max(4, 2*n/max(1, len(kinds))); ; limit *= 4 {
		var times []store.Time
		for _, k := range kinds {
			times = append(times, k.times...)
		}
		if slices.Sort(times); len(times) > n { // the cursor's own task may be among them
			end = times[n] + 1
		}
		var short []*listedKind // of these, more tasks may be due in the period
		rowIDs := []int64{}
		for _, k := range kinds {
			if len(k.times) == k.limit && k.limit <= n && k.times[k.limit-1] < end-1 {
				short, rowIDs = append(short, k), append(rowIDs, k.row)
				k.times, k.limit = nil, limit
			}
		}
		if len(short) == 0 {
			break
		}
		x.queryRows(onIndex(false, firstTimes), []any{encodeJSON(rowIDs), from, int64(end), limit}, func(rows *sql.Rows) {
			var i int
			var at store.Time
			must(rows.Scan(&i, &at))
			short[i].times = append(short[i].times, at)
		})
		for _, k := range short {
			slices.Sort(k.times)
		}
	}
	if end != to {
		q.To = end
	}
	rowIDs := []int64{}
	for _, k := range kinds {
		if len(k.times) > 0 && k.times[0] < end {
			rowIDs = append(rowIDs, k.row)
		}
	}
	return rowIDs
}

// firstAfterPrefix returns the first value that SQLite sorts after all strings with the
// prefix. An empty blob comes after all strings.
func firstAfterPrefix(prefix string) any {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			return prefix[:i] + string([]byte{prefix[i] + 1})
		}
	}
	return []byte{}
}
