package sqlitestore

import (
	"cmp"
	"database/sql"
	"fmt"
	"slices"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/machine"
)

// A pendingKind names the pending tasks with one handler and schedule: either all suspects
// among them, or all others. Each has an index of its own.
type pendingKind struct {
	handler, schedule string
	suspect           bool
}

// onIndex returns a query for pending tasks, for the index of suspects or of others.
func onIndex(suspect bool, query string) string {
	if suspect {
		return fmt.Sprintf(query, "tickless_tasks INDEXED BY tickless_suspects WHERE state = 5")
	}
	return fmt.Sprintf(query, "tickless_tasks INDEXED BY tickless_due WHERE state = 1")
}

// A headTable has the first due time of each kind of the handlers that this process has
// claimed tasks of. So a claim reads only kinds with due tasks, in the order of time, and no
// number of other handlers costs it anything. Commits of other processes discard the table.
type headTable struct {
	loaded map[string]bool // handlers
	heads  map[pendingKind]head
}

// A head is when the first task of a kind is due, or earlier if it is not exact.
type head struct {
	at    store.Time
	exact bool
}

// loadHeads adds handlers to the table. It takes O(log n) for each of their kinds.
func (ix *index) loadHeads(handlers []string) {
	if ix.headTable == nil {
		ix.headTable = &headTable{loaded: make(map[string]bool), heads: make(map[pendingKind]head)}
	}
	var missing []string
	for _, h := range handlers {
		if !ix.headTable.loaded[h] {
			ix.headTable.loaded[h] = true
			missing = append(missing, h)
		}
	}
	if len(missing) == 0 {
		return
	}
	for _, suspect := range []bool{false, true} {
		ix.queryRows(onIndex(suspect, kindHeads), []any{encodeJSON(missing)}, func(rows *sql.Rows) {
			k, x := pendingKind{suspect: suspect}, head{exact: true}
			must(rows.Scan(&k.handler, &k.schedule, &x.at))
			ix.headTable.heads[k] = x
		})
	}
}

const (
	// kindHeads selects the kinds of some handlers, each with the time of its first task.
	kindHeads = `WITH RECURSIVE handlers(name) AS (SELECT value FROM json_each(?1)), k(h, s) AS (` + kindsOfHandlers + `)
		SELECT h, s, (SELECT min(at) FROM %[1]s AND handler = h AND schedule = s) FROM k WHERE s IS NOT NULL`
	// kindsOfHandlers selects the kinds of handlers. pendingHandlers selects the handlers of
	// pending tasks from ?1 to ?2. Both skip from one to the next.
	kindsOfHandlers = `SELECT name, (SELECT min(schedule) FROM %[1]s AND handler = name) FROM handlers
		UNION ALL SELECT h, (SELECT min(schedule) FROM %[1]s AND handler = h AND schedule > s) FROM k WHERE s IS NOT NULL`
	pendingHandlers = `SELECT min(handler) FROM %[1]s AND handler >= ?1 AND handler <= ?2
		UNION ALL SELECT (SELECT min(handler) FROM %[1]s AND handler > name AND handler <= ?2) FROM handlers WHERE name IS NOT NULL`
)

// noteHead keeps the table correct when a row changes.
func (t *headTable) noteHead(x *cachedTask) {
	if t == nil {
		return
	}
	if old := x.storedKind; x.storedPending && t.heads[old].at == x.storedAt {
		t.heads[old] = head{at: x.storedAt}
	}
	if x.State != store.Pending || x.Waits() || x.Parked || !t.loaded[x.Handler] {
		return
	}
	k := kindOf(&x.Task)
	if h, ok := t.heads[k]; !ok || x.At <= h.at {
		t.heads[k] = head{x.At, true}
	}
}

func kindOf(t *machine.Task) pendingKind {
	return pendingKind{t.Handler, t.Schedule, t.State == store.Pending && t.Suspect}
}

func kindOfSource(s *machine.Source) pendingKind {
	return pendingKind{s.Handler, s.Schedule, s.Suspect}
}

// Due offers due tasks to the picker, without damaged rows. It reads the tasks of several
// kinds at once.
func (ix *index) Due(c *store.Claim, picker *machine.Picker, now store.Time, n int) (due []*machine.Task, next store.Time) {
	ix.flushTasks()
	ix.loadHeads(c.Handlers)
	sources, next := ix.dueSources(c, now)
	var read []*machine.Source
	due = picker.Merge(sources, n, func(sources []*machine.Source, need int) {
		read = append(read, ix.readSources(sources, now, need)...)
	})
	claimed := due[:min(len(due), n-1)] // the n-th only tells that there is one
	return due, min(next, ix.moveHeads(read, claimed, len(due) == n, now))
}

// dueSources returns a source for each kind of the claim that has due tasks, and when the
// first of the others is due.
func (ix *index) dueSources(c *store.Claim, now store.Time) (sources []*machine.Source, next store.Time) {
	handlers, schedules := make(map[string]bool, len(c.Handlers)), map[string]bool{"": true}
	for _, h := range c.Handlers {
		handlers[h] = true
	}
	for _, s := range c.Schedules {
		schedules[s] = true
	}
	next = machine.Never
	for k, h := range ix.headTable.heads {
		switch {
		case !handlers[k.handler] || !schedules[k.schedule]:
		case h.at > now:
			next = min(next, h.at)
		default:
			sources = append(sources, &machine.Source{Handler: k.handler, Schedule: k.schedule, Suspect: k.suspect, More: true, At: h.at, Exact: h.exact})
		}
	}
	return sources, next
}

// readSources reads tasks of the source that is due first, and of others that come soon after
// it if they must be read too. need is how many tasks the claim may still get.
func (ix *index) readSources(sources []*machine.Source, now store.Time, need int) (opened []*machine.Source) {
	bySuspect := make(map[bool][]*machine.Source)
	chosen := []*machine.Source{sources[0]}
	if sources[0].Limit == 0 && len(sources) > 1 {
		chosen = chosen[:0]
		for _, s := range sources {
			if s.Limit == 0 {
				chosen = append(chosen, s)
			}
		}
		slices.SortFunc(chosen, func(a, b *machine.Source) int { return cmp.Compare(a.At, b.At) })
		chosen = chosen[:min(len(chosen), need)]
	}
	limit := (need+len(chosen)-1)/len(chosen) + 1
	if limit > 4 {
		limit = (limit + 7) / 8 * 8 // few different statements
	}
	for _, s := range chosen {
		if s.Limit == 0 {
			opened = append(opened, s)
		}
		s.Limit = max(limit, 4*s.Limit)
		limit = s.Limit
		bySuspect[s.Suspect] = append(bySuspect[s.Suspect], s)
	}
	for suspect, list := range bySuspect {
		var args []any
		for i, s := range list {
			args = append(args, i, s.Handler, s.Schedule, int64(now))
			s.Tasks, s.Exact = s.Tasks[:0], false
		}
		rowCounts := make([]int, len(list))
		query := fmt.Sprintf(dueTasks, limit)
		ix.queryInBatches(onIndex(suspect, query), 4, args, func(rows *sql.Rows) {
			var i int
			var rowID int64
			if x := scanTask(rows, &i, &rowID); x.err == nil {
				if x.State != store.Pending || x.Waits() || x.Parked || kindOf(&x.Task) != kindOfSource(list[i]) || x.At > now {
					must(fmt.Errorf("%w: an index contains the task %q, which is not due or of another kind", ErrDamaged, store.Shorten(x.ID)))
				}
				list[i].Tasks = append(list[i].Tasks, ix.cacheTask(x))
				ix.tasks[x.ID].rowID = rowID
			}
			rowCounts[i]++
		})
		for i, s := range list {
			s.More = rowCounts[i] == limit
			slices.SortStableFunc(s.Tasks, func(a, b *machine.Task) int { return cmp.Compare(a.At, b.At) })
		}
	}
	return opened
}

// dueTasks selects the first due tasks of several kinds. The rows of one kind come in any
// order.
const dueTasks = `WITH k(n, kind_handler, kind_schedule, now) AS (VALUES ROWS) SELECT k.n, t.rowid, ` + taskColumns + ` FROM k CROSS JOIN tickless_tasks AS t
	ON t.rowid IN (SELECT rowid FROM %%s AND handler = kind_handler AND schedule = kind_schedule AND at <= now ORDER BY at LIMIT %d)`

// nextDue selects when the next task of several kinds is due.
const nextDue = `WITH k(n, kind_handler, kind_schedule, now) AS (VALUES ROWS)
	SELECT n, (SELECT min(at) FROM %s AND handler = kind_handler AND schedule = kind_schedule AND at > now) FROM k`

// moveHeads updates the heads of the kinds that were read. If the claim is not full, it returns
// when the first task of a kind is due whose due tasks were all claimed or skipped.
func (ix *index) moveHeads(read []*machine.Source, claimed []*machine.Task, isFull bool, now store.Time) (next store.Time) {
	isClaimed := make(map[*machine.Task]bool, len(claimed))
	for _, t := range claimed {
		isClaimed[t] = true
	}
	next = machine.Never
	for _, suspect := range []bool{false, true} {
		var asked []*machine.Source
		skipped := make(map[*machine.Source]bool) // a due task was offered, and is not claimed
		var args []any
		for _, s := range read {
			i := slices.IndexFunc(s.Tasks, func(t *machine.Task) bool { return !isClaimed[t] })
			switch {
			case s.Suspect != suspect:
				continue
			case i >= 0:
				ix.headTable.heads[kindOfSource(s)] = head{s.Tasks[i].At, true}
				if isFull || i >= s.Offered {
					continue
				} // else a group is full, and a task of another one may come before it has room
				skipped[s] = true
			case s.More && len(s.Tasks) == 0: // all rows that were read are damaged
				continue
			case s.More:
				ix.headTable.heads[kindOfSource(s)] = head{at: s.Tasks[len(s.Tasks)-1].At}
				continue
			}
			args = append(args, len(asked), s.Handler, s.Schedule, int64(now))
			asked = append(asked, s)
		}
		ix.queryInBatches(onIndex(suspect, nextDue), 4, args, func(rows *sql.Rows) {
			var i int
			var at sql.NullInt64
			must(rows.Scan(&i, &at))
			switch k := kindOfSource(asked[i]); {
			case skipped[asked[i]]:
			case at.Valid:
				ix.headTable.heads[k] = head{store.Time(at.Int64), true}
			default:
				delete(ix.headTable.heads, k)
			}
			if at.Valid {
				next = min(next, store.Time(at.Int64))
			}
		})
	}
	return next
}
