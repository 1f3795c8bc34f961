package sqlitestore

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/machine"
)

// List returns a page. Each page has its own transaction, because a long transaction prevents the log from being reused.
//
// A page also reads the entries that it skips. With a Prefix these are only entries with
// the prefix. With an Error they are only entries with failures.
func (s *Store) List(ctx context.Context, _ int, f store.Filter, c store.Cursor, limit int) (p store.Page, err error) {
	if err := store.CheckList(&f, limit); err != nil {
		return p, err
	}
	err = s.runReadTx(ctx, func(x *session) {
		p = store.Page{}
		tasks := x.listTasks(&f, c, limit+1)
		if len(tasks) > limit {
			tasks = tasks[:limit]
			p.Next = f.CursorOf(&tasks[limit-1].Entry)
		}
		for _, t := range tasks {
			if t.err != nil {
				t.Entry = store.Entry{Task: store.Task{ID: t.ID}, State: t.State, At: t.At, Damaged: true}
			}
			p.Entries = append(p.Entries, t.Entry)
		}
	})
	return p, err
}

// listTasks returns the first n tasks that match the filter and come after the cursor.
func (x *session) listTasks(f *store.Filter, c store.Cursor, n int) (found []*cachedTask) {
	appendMatches := func(f *store.Filter, index, condition string, args ...any) {
		args = append([]any{int64(max(f.From, c.At)), int64(cmp.Or(f.To, machine.Never)), int64(f.State), f.Handler, f.Error,
			n - len(found), int64(c.At), c.ID}, args...)
		x.queryRows(`SELECT `+taskColumns+` FROM tickless_tasks INDEXED BY `+index+` WHERE at >= ?1 AND at < ?2 AND (?3 = 0 OR state = ?3)
			AND (?4 = '' OR handler = ?4) AND (?5 = '' OR json_valid(more) AND instr(json_extract(more, '$.failures[#-1].Text'), ?5) > 0) AND `+condition+` LIMIT ?6`,
			args, func(rows *sql.Rows) { found = append(found, scanTask(rows)) })
	}
	const afterCursor = ` AND (at > ?7 OR id > ?8) ORDER BY at, id`
	if f.Prefix != "" {
		from, condition := f.Prefix, `id >= ?9 AND id < ?10 ORDER BY id`
		if c.ID != "" {
			from, condition = c.ID, `id > ?9 AND id < ?10 ORDER BY id`
		}
		appendMatches(f, "sqlite_autoindex_tickless_tasks_1", condition, from, firstAfterPrefix(f.Prefix))
		return found
	}
	for state := max(store.Pending, c.State); state <= store.Past && len(found) < n; state++ {
		if state > c.State {
			c = store.Cursor{State: state}
		}
		switch {
		case f.State != 0 && f.State != state:
		case f.Error != "":
			appendMatches(f, "tickless_more", `more IS NOT NULL AND state = ?9`+afterCursor, int64(state))
		case state == store.Pending:
			kinds := x.pendingKinds()
			if f.Handler != "" {
				kinds = slices.DeleteFunc(kinds, func(k machine.Kind) bool { return k.Handler != f.Handler })
			}
			f := *f
			f.To = x.pageEndTime(kinds, &f, c, n)
			var all []*cachedTask
			for _, k := range kinds {
				found = nil
				appendMatches(&f, "tickless_due", `state = 1 AND handler = ?9 AND schedule = ?10`+afterCursor, k.Handler, k.Schedule)
				all = append(all, found...)
			}
			slices.SortFunc(all, func(a, b *cachedTask) int { return f.CursorOf(&a.Entry).Compare(f.CursorOf(&b.Entry)) })
			found = all[:min(n, len(all))]
		default:
			appendMatches(f, "tickless_rest", `state > 1 AND state = ?9`+afterCursor, int64(state))
		}
	}
	return found
}

// pageEndTime returns the end of a period, from the cursor on, in which at least n tasks
// are due. If there are fewer tasks, it returns the filter's To. So listTasks need not
// read n rows of each kind.
func (x *session) pageEndTime(kinds []machine.Kind, f *store.Filter, c store.Cursor, n int) store.Time {
	var times []store.Time
	to := cmp.Or(f.To, machine.Never)
	for _, k := range kinds {
		x.queryRows(dueTimes, []any{k.Handler, k.Schedule, int64(max(f.From, c.At+1)), int64(to), n}, func(rows *sql.Rows) {
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
