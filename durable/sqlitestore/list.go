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
				add(read(failedByTime, &f, pendingSuspect))
				add(read(failedByTime, &f, pendingPaused))
			} else {
				kinds := x.pendingKinds()
				if f.Handler != "" {
					kinds = slices.DeleteFunc(kinds, func(k pendingKind) bool { return k.handler != f.Handler })
				}
				if f.To = x.pageEndTime(kinds, &f, c, n); f.To != all.To {
					next = store.Cursor{State: state, At: f.To} // if not all of these match
				}
				add(read(othersByTime, &f, pendingPaused))
				for _, k := range kinds {
					o := pendingByTime
					if k.suspect {
						o = suspectsByTime
					}
					add(read(o, &f, k.handler, k.schedule))
				}
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

// A listOrder is an index with the order of a list. A position in the list is the value of
// column, and an id.
type listOrder struct {
	index, condition, column string
	backwards                bool
}

var (
	pendingByTime  = listOrder{"tickless_due", "state = 1 AND handler = ?5 AND schedule = ?6", "at", false}
	suspectsByTime = listOrder{"tickless_suspects", "state = 5 AND handler = ?5 AND schedule = ?6", "at", false}
	othersByTime   = listOrder{"tickless_rest", "state > 1 AND state = ?5", "at", false}
	failedByTime   = listOrder{"tickless_more", "more IS NOT NULL AND state = ?5", "at", false}
	runsByEnd      = listOrder{"tickless_ended", "state = 4 AND length(record) > 16", "substr(record, 2, 16)", true}
	tasksByID      = listOrder{"sqlite_autoindex_tickless_tasks_1", "1", "id", false}
)

// maxScanned is how many entries a page looks at that do not match the filter.
const maxScanned = 10_000

// readOrdered returns the first n tasks that match the filter, with values of the column from
// from to to. They come after the cursor, whose value of the column is after. args are the
// parameters of the order's condition. It leaves out what has expired at now. If there are more than maxScanned entries, next is the
// position after those.
func (x *session) readOrdered(o listOrder, f *store.Filter, c store.Cursor, after, from, to any, n int, now store.Time, args ...any) (found []*cachedTask, next store.Cursor) {
	direction, further := "", ">"
	if o.backwards {
		direction, further = " DESC", "<"
		after = []byte(after.(string))
	}
	args = append([]any{after, c.ID, from, to}, args...)
	ordered := fmt.Sprintf(` FROM tickless_tasks INDEXED BY %s WHERE %s AND %s %s= ?1 AND (%[3]s %[4]s ?1 OR id %[4]s ?2) AND %[3]s >= ?3 AND %[3]s < ?4 ORDER BY %[3]s%[5]s, id%[5]s`,
		o.index, o.condition, o.column, further, direction)
	k := len(args)
	atFrom, atTo := f.From, cmp.Or(f.To, machine.Never)
	prefix := ""
	if f.Runs {
		atFrom, atTo, prefix = 0, machine.Never, f.Prefix
	}
	all := append(slices.Clip(args), int64(f.State), f.Handler, f.Error, int64(f.DueFrom), int64(cmp.Or(f.DueTo, machine.Never)), int64(atFrom), int64(atTo), prefix, n, int64(now), f.Paused)
	// The inner query finds entries in order, and the outer one reads those that match.
	x.queryRows(fmt.Sprintf(`SELECT t.`+strings.ReplaceAll(taskColumns, ", ", ", t.")+`
		FROM (SELECT rowid AS r, state, handler, more, due, at, id%[1]s LIMIT %[2]d) i CROSS JOIN tickless_tasks t ON t.rowid = i.r
		WHERE (i.state <> 4 OR i.at > ?%[12]d) AND (?%[3]d = 0 OR i.state = ?%[3]d OR ?%[3]d = 1 AND i.state IN (5, 6)) AND (?%[4]d = '' OR i.handler = ?%[4]d)
		AND (?%[5]d = '' OR json_valid(i.more) AND instr(json_extract(i.more, '$.failures[#-1].Text'), ?%[5]d) > 0)
		AND i.due >= ?%[6]d AND i.due < ?%[7]d AND i.at >= ?%[8]d AND i.at < ?%[9]d AND substr(i.id, 1, length(?%[10]d)) = ?%[10]d
		AND (NOT ?%[13]d OR json_valid(i.more) AND json_extract(i.more, '$.paused')) LIMIT +?%[11]d`,
		ordered, maxScanned, k+1, k+2, k+3, k+4, k+5, k+6, k+7, k+8, k+9, k+10, k+11), all, func(rows *sql.Rows) { found = append(found, scanTask(rows)) })
	if len(found) == n {
		return found, next
	}
	var value any
	if x.queryRow(fmt.Sprintf(`SELECT %s, id%s LIMIT 1 OFFSET %d`, o.column, ordered, maxScanned-1), args, &value, &next.ID) {
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

// pageEndTime returns the end of a period, from the cursor on, in which at least n tasks
// are due. If there are fewer tasks, it returns the filter's To. So listTasks need not
// read n rows of each kind.
func (x *session) pageEndTime(kinds []pendingKind, f *store.Filter, c store.Cursor, n int) store.Time {
	var times []store.Time
	to := cmp.Or(f.To, machine.Never)
	for _, k := range kinds {
		x.queryRows(onIndex(k.suspect, dueTimes), []any{k.handler, k.schedule, int64(max(f.From, c.At+1)), int64(to), n}, func(rows *sql.Rows) {
			var at store.Time
			must(rows.Scan(&at))
			times = append(times, at)
		})
	}
	if len(times) < n {
		return f.To
	}
	slices.Sort(times)
	return times[n-1] + 1
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
