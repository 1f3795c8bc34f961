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
		var tasks []*cachedTask
		tasks, p.Next = x.listTasks(&f, c, limit+1, s.readClocks().Wall)
		if len(tasks) > limit {
			tasks = tasks[:limit]
			p.Next = f.CursorOf(&tasks[limit-1].Entry)
		}
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

// listTasks returns the first n tasks that match the filter and come after the cursor. If
// it has skipped maxScanned entries, next is the position where it has stopped.
func (x *session) listTasks(f *store.Filter, c store.Cursor, n int, now store.Time) (found []*cachedTask, next store.Cursor) {
	switch {
	case f.Runs:
		after := "~" // after all times
		if c != (store.Cursor{}) {
			after = fmt.Sprintf("%016d", c.At)
		}
		return x.readOrdered(runsByEnd, f, c, after, fmt.Appendf(nil, "%016d", f.From), fmt.Appendf(nil, "%016d", cmp.Or(f.To, store.Farthest)), n, now)
	case f.Prefix != "":
		return x.readOrdered(tasksByID, f, c, c.ID, f.Prefix, firstAfterPrefix(f.Prefix), n, now)
	}
	for state := max(store.Pending, c.State); state <= store.Past && len(found) < n && next == (store.Cursor{}); state++ {
		if state > c.State {
			c = store.Cursor{State: state, At: -1}
		}
		read := func(o listOrder, f *store.Filter, args ...any) (found []*cachedTask, next store.Cursor) {
			return x.readOrdered(o, f, c, int64(c.At), int64(f.From), int64(cmp.Or(f.To, machine.Never)), n-len(found), now, args...)
		}
		var more []*cachedTask
		switch {
		case f.State != 0 && f.State != state:
		case (f.Error != "" || f.Paused) && state > store.Pending:
			more, next = read(failedByTime, f, int64(state))
		case state == store.Pending:
			all := *f
			f := all
			add := func(found []*cachedTask, end store.Cursor) {
				more = append(more, found...)
				if end != (store.Cursor{}) && (next == (store.Cursor{}) || end.Compare(next) < 0) {
					next = end
				}
			}
			if f.Error != "" || f.Paused {
				add(read(failedByTime, &f, int64(state)))
				for _, s := range []int64{pendingSuspect, pendingPaused, parked, parkedSuspect} {
					add(read(failedByTime, &f, s))
				}
			} else {
				kinds := x.pageKinds(&f, c, n)
				if f.To != all.To {
					next = store.Cursor{State: state, At: f.To} // if not all of these match
				}
				add(read(othersByTime, &f, pendingPaused))
				add(read(pendingByTime, &f, encodeJSON(kinds[false])))
				add(read(suspectsByTime, &f, encodeJSON(kinds[true])))
				add(read(othersByTime, &f, parked))
				add(read(othersByTime, &f, parkedSuspect))
			}
			slices.SortFunc(more, func(a, b *cachedTask) int { return f.CursorOf(&a.Entry).Compare(f.CursorOf(&b.Entry)) })
			if next != (store.Cursor{}) {
				more = slices.DeleteFunc(more, func(t *cachedTask) bool { return f.CursorOf(&t.Entry).Compare(next) > 0 })
			}
		default:
			f := *f
			if state == store.Past {
				f.From = max(f.From, now+1) // others have expired
			}
			more, next = read(othersByTime, &f, int64(state))
		}
		found = append(found, more...)
	}
	return found[:min(n, len(found))], next
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
	pendingByTime  = listOrder{inKinds + "tickless_tasks t INDEXED BY tickless_due", "t.state = 1 AND t.handler = f.handler AND t.schedule = f.schedule", "t.at", false}
	suspectsByTime = listOrder{inKinds + "tickless_tasks t INDEXED BY tickless_suspects", "t.state = 5 AND t.handler = f.handler AND t.schedule = f.schedule", "t.at", false}
	othersByTime   = listOrder{"tickless_tasks t INDEXED BY tickless_rest", "t.state > 1 AND t.state = ?5", "t.at", false}
	failedByTime   = listOrder{"tickless_tasks t INDEXED BY tickless_more", "t.more IS NOT NULL AND t.state = ?5", "t.at", false}
	runsByEnd      = listOrder{"tickless_tasks t INDEXED BY tickless_ended", "t.state = 4 AND length(t.record) > 16", "substr(t.record, 2, 16)", true}
	tasksByID      = listOrder{"tickless_tasks t INDEXED BY sqlite_autoindex_tickless_tasks_1", "1", "t.id", false}
)

// maxScanned is how many entries a page looks at that do not match the filter.
const maxScanned = 10_000

// readOrdered returns the first n tasks that match the filter, with values of the column from
// from to to. They come after the cursor, whose value of the column is after. args are the
// parameters of the order. It leaves out what has expired at now. If there are more than
// maxScanned entries, next is the position after those.
func (x *session) readOrdered(o listOrder, f *store.Filter, c store.Cursor, after, from, to any, n int, now store.Time, args ...any) (found []*cachedTask, next store.Cursor) {
	direction, further := "", ">"
	if o.backwards {
		direction, further = " DESC", "<"
		after = []byte(after.(string))
	}
	args = append([]any{after, c.ID, from, to}, args...)
	ordered := fmt.Sprintf(` FROM %s WHERE %s AND %s %s= ?1 AND (%[3]s %[4]s ?1 OR t.id %[4]s ?2) AND %[3]s >= ?3 AND %[3]s < ?4 ORDER BY %[3]s%[5]s, t.id%[5]s`,
		o.tables, o.condition, o.column, further, direction)
	k := len(args)
	atFrom, atTo := f.From, cmp.Or(f.To, machine.Never)
	prefix := ""
	if f.Runs {
		atFrom, atTo, prefix = 0, machine.Never, f.Prefix
	}
	all := append(slices.Clip(args), int64(f.State), f.Handler, f.Group, f.Error, int64(f.DueFrom), int64(cmp.Or(f.DueTo, machine.Never)), int64(atFrom), int64(atTo), prefix, n, int64(now), f.Paused)
	// The inner query finds entries in order, and the outer one reads those that match.
	x.queryRows(fmt.Sprintf(`SELECT t.`+strings.ReplaceAll(taskColumns, ", ", ", t.")+`
		FROM (SELECT t.rowid AS r, t.state, t.handler, t.more, t.due, t.at, t.id, t.grp%[1]s LIMIT %[2]d) i CROSS JOIN tickless_tasks t ON t.rowid = i.r
		WHERE (i.state <> 4 OR i.at > ?%[13]d) AND (?%[3]d = 0 OR i.state = ?%[3]d OR ?%[3]d = 1 AND i.state IN (5, 6, 9, 13)) AND (?%[4]d = '' OR i.handler = ?%[4]d)
		AND (?%[5]d = '' OR i.grp = ?%[5]d)
		AND (?%[6]d = '' OR json_valid(i.more) AND instr(json_extract(i.more, '$.failures[#-1].Text'), ?%[6]d) > 0)
		AND i.due >= ?%[7]d AND i.due < ?%[8]d AND i.at >= ?%[9]d AND i.at < ?%[10]d AND substr(i.id, 1, length(?%[11]d)) = ?%[11]d
		AND (NOT ?%[14]d OR json_valid(i.more) AND json_extract(i.more, '$.paused')) LIMIT +?%[12]d`,
		ordered, maxScanned, k+1, k+2, k+3, k+4, k+5, k+6, k+7, k+8, k+9, k+10, k+11, k+12), all, func(rows *sql.Rows) { found = append(found, scanTask(rows)) })
	if len(found) == n {
		return found, next
	}
	var value any
	if x.queryRow(fmt.Sprintf(`SELECT %s, t.id%s LIMIT 1 OFFSET %d`, o.column, ordered, maxScanned-1), args, &value, &next.ID) {
		switch value := value.(type) {
		case int64:
			next.State, next.At = c.State, store.Time(value)
		case []byte:
			ended, _ := strconv.ParseInt(string(value), 10, 64)
			next.State, next.At = store.Past, store.Time(ended)
		}
	}
	return found, next
}

// A listedKind is a kind with tasks that may be on a page.
type listedKind struct {
	row     int64 // the rowid of its first task
	suspect bool
	times   []store.Time // when its first tasks are due, in order
	limit   int          // how many times were read at most
}

const (
	listKinds = `WITH RECURSIVE handlers(name) AS (` + pendingHandlers + `), k(h, s) AS (` + kindsOfHandlers + `)
		SELECT t.rowid, t.at FROM k CROSS JOIN tickless_tasks t
		ON t.rowid = (SELECT rowid FROM %[1]s AND handler = h AND schedule = s AND at >= ?3 AND at < ?4 ORDER BY at LIMIT 1) WHERE s IS NOT NULL`
	firstTimes = `SELECT k.key, t.at FROM json_each(?1) k CROSS JOIN tickless_tasks f ON f.rowid = k.value CROSS JOIN tickless_tasks t
		ON t.rowid IN (SELECT rowid FROM %s AND handler = f.handler AND schedule = f.schedule AND at >= ?2 AND at < ?3 ORDER BY at LIMIT +?4)`
)

// pageKinds returns, by suspect, a task of each kind that has tasks on a page of n. It sets
// the filter's To to the end of a period, from the cursor on, in which n tasks are due, or
// few more. So a page costs O(log n) for each kind that is pending, and for each of its tasks.
func (x *session) pageKinds(f *store.Filter, c store.Cursor, n int) map[bool][]int64 {
	var kinds []*listedKind
	lastHandler := firstAfterPrefix(f.Handler)
	if f.Handler != "" {
		lastHandler = f.Handler
	}
	from, to := int64(max(f.From, c.At)), cmp.Or(f.To, machine.Never)
	for _, suspect := range []bool{false, true} {
		x.queryRows(onIndex(suspect, listKinds), []any{f.Handler, lastHandler, from, int64(to)}, func(rows *sql.Rows) {
			k := &listedKind{suspect: suspect, times: make([]store.Time, 1), limit: 1}
			must(rows.Scan(&k.row, &k.times[0]))
			kinds = append(kinds, k)
		})
	}
	end := to
	for limit := max(4, 2*n/max(1, len(kinds))); ; limit *= 4 {
		var times []store.Time
		for _, k := range kinds {
			times = append(times, k.times...)
		}
		if slices.Sort(times); len(times) > n { // the cursor's own task may be among them
			end = times[n] + 1
		}
		short := make(map[bool][]*listedKind) // of these, more tasks may be due in the period
		for _, k := range kinds {
			if len(k.times) == k.limit && k.limit <= n && k.times[k.limit-1] < end-1 {
				short[k.suspect] = append(short[k.suspect], k)
			}
		}
		if len(short) == 0 {
			break
		}
		for suspect, list := range short {
			rowIDs := make([]int64, len(list))
			for i, k := range list {
				rowIDs[i], k.times, k.limit = k.row, nil, limit
			}
			x.queryRows(onIndex(suspect, firstTimes), []any{encodeJSON(rowIDs), from, int64(end), limit}, func(rows *sql.Rows) {
				var i int
				var at store.Time
				must(rows.Scan(&i, &at))
				list[i].times = append(list[i].times, at)
			})
			for _, k := range list {
				slices.Sort(k.times)
			}
		}
	}
	if end != to {
		f.To = end
	}
	rowIDs := map[bool][]int64{false: {}, true: {}}
	for _, k := range kinds {
		if len(k.times) > 0 && k.times[0] < end {
			rowIDs[k.suspect] = append(rowIDs[k.suspect], k.row)
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
