package pgstore

import (
	"cmp"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/machine"
)

const (
	// dueTasks selects up to $6 due tasks of each kind and, if $7, a nextTask.
	dueTasks = `SELECT k.n, t.* FROM (SELECT tickless.clock() AS now OFFSET 0) c CROSS JOIN unnest($2::text[], $3::text[], $4::int8[], $5::text[]) WITH ORDINALITY k(handler, schedule, since, since_id, n)
		CROSS JOIN LATERAL ((SELECT ` + taskColumns + ofKind + ` AND (at, id) >= (k.since, k.since_id) AND at <= c.now ORDER BY at, id LIMIT $6)
			UNION ALL (SELECT ` + nextTask + ofKind + ` AND $7 AND at > c.now ORDER BY at LIMIT 1)) t`
	ofKind       = ` FROM tickless.tasks WHERE shard = $1 AND state = 1 AND NOT suspect AND handler = k.handler AND schedule = k.schedule`
	suspectTasks = `SELECT ` + taskColumns + ` FROM tickless.tasks WHERE shard = $1 AND state = 1 AND suspect
		AND handler = ANY($2) AND (schedule = '' OR schedule = ANY($3)) ORDER BY at LIMIT $4`
)

// loadDue adds a query for the oldest due tasks of each kind, up to n of each, or for the times
// when the next ones are due, or for both.
func (ix *index) loadDue(b *pgx.Batch, kinds []*dueRows, n int, next bool) {
	if len(kinds) == 0 {
		return
	}
	var handlers, schedules, ids []string
	var since []int64
	for _, k := range kinds {
		if n > 0 {
			ix.due[k.kind], k.tasks, k.until, k.next = k, nil, machine.Never, 0
		}
		if next {
			k.next = machine.Never
		}
		from := ix.memory.from[k.kind]
		handlers, schedules, since, ids = append(handlers, k.handler), append(schedules, k.schedule), append(since, int64(from.at)), append(ids, from.id)
	}
	ix.query(b, func(rows pgx.Rows) {
		var number int
		x := scanTask(rows, &number)
		k := kinds[number-1]
		if x.State == 0 {
			k.next = x.At
			return
		}
		at := x.At // as stored
		if k.tasks = append(k.tasks, ix.cache(x)); len(k.tasks) == n {
			k.until = at
		}
	}, dueTasks, ix.shard, handlers, schedules, since, ids, n, next)
}

// loadSuspects adds a query for the oldest n suspects of a claim.
func (ix *index) loadSuspects(b *pgx.Batch, handlers, schedules []string, n int) {
	d := &suspectRows{until: machine.Never, handlers: handlers, schedules: append([]string{}, schedules...)}
	ix.suspects = d
	ix.query(b, func(rows pgx.Rows) {
		x := scanTask(rows)
		at := x.At
		if d.tasks = append(d.tasks, ix.cache(x)); len(d.tasks) == n {
			d.until = at
		}
	}, suspectTasks, ix.shard, handlers, d.schedules, n)
}

// kindsOf returns the kinds that a claim may get, except those of the handlers without room.
func (ix *index) kindsOf(c *store.Claim, hasRoom func(handler string) bool) (kinds []*dueRows) {
	for _, h := range c.Handlers {
		if !hasRoom(h) {
			continue
		}
		for i := -1; i < len(c.Schedules); i++ {
			k := kind{handler: h}
			if i >= 0 {
				k.schedule = c.Schedules[i]
			}
			if d := ix.due[k]; d != nil {
				kinds = append(kinds, d)
			} else {
				kinds = append(kinds, &dueRows{kind: k})
			}
		}
	}
	return kinds
}

// loadClaims adds the queries for all claims of a transaction.
func (ix *index) loadClaims(b *pgx.Batch, claims []*store.Claim) {
	var kinds []*dueRows
	n, suspects := 0, 0
	for _, c := range claims {
		n += c.Max + 1
		suspects += c.Suspects + 1
		for _, k := range ix.kindsOf(c, func(h string) bool { return !ix.memory.isPaused(h) }) {
			if ix.due[k.kind] == nil {
				ix.due[k.kind] = k
				kinds = append(kinds, k)
			}
		}
	}
	if len(kinds) == 0 {
		return
	}
	ix.loadDue(b, kinds, rowsOfKind(len(kinds), n), !ix.memory.isBusy)
	if len(claims) == 1 {
		ix.loadSuspects(b, claims[0].Handlers, claims[0].Schedules, suspects)
	}
}

// rowsOfKind returns how many rows of each kind to read first, to find n tasks.
func rowsOfKind(kinds, n int) int {
	if kinds <= 1 {
		return n
	}
	return (2*n + kinds - 1) / kinds
}

// Due returns up to n due tasks that match a claim. If there are fewer, next is when
// another task is due, or machine.Never.
func (ix *index) Due(c *store.Claim, picker *machine.Picker, now store.Time, n int) (due []*machine.Task, next store.Time) {
	kinds := ix.kindsOf(c, func(h string) bool { return picker.Needs(h) > 0 })
	if ix.numbers.Backdated != ix.memory.backdated {
		ix.memory.from = nil // the rows may lack tasks
		clear(ix.due)
		ix.memory.backdated = ix.numbers.Backdated
	}
	pendingByKind := make(map[kind][]*machine.Task)
	for _, x := range ix.dirtyTasks {
		if t := &x.Task; t.State == store.Pending && !t.Suspect && !t.Waits() && !t.Parked {
			k := kind{t.Handler, t.Schedule}
			pendingByKind[k] = append(pendingByKind[k], t)
		}
	}
	tasksOf := func(k *dueRows) (tasks []*machine.Task) {
		for _, x := range k.tasks {
			if !x.dirty {
				tasks = append(tasks, &x.Task)
			}
		}
		return append(tasks, pendingByKind[k.kind]...)
	}
	for size := rowsOfKind(len(kinds), n); ; size *= 4 {
		var short []*dueRows // of these, tasks may be due that were not read
		limit, found := store.Time(math.MaxInt64), 0
		for _, k := range kinds {
			if ix.due[k.kind] != k {
				short = append(short, k)
			}
		}
		var b pgx.Batch
		ix.loadDue(&b, short, size, false)
		ix.send(&b)
		short, due = nil, nil
		for _, k := range kinds {
			due = append(due, slices.DeleteFunc(tasksOf(k), func(t *machine.Task) bool { return t.At > now || t.At > k.until })...)
		}
		slices.SortStableFunc(due, func(a, b *machine.Task) int { return cmp.Compare(a.At, b.At) })
		due = picker.WithoutSkipped(due)
		counts := make(map[kind]int)
		for _, t := range due {
			counts[kind{t.Handler, t.Schedule}]++
		}
		for _, k := range kinds {
			if k.until <= now && counts[k.kind] < picker.Needs(k.handler) {
				short = append(short, k)
				limit = min(limit, k.until)
			}
		}
		roomUsed := make(map[string]int)
		for _, t := range due {
			if roomUsed[t.Handler]++; t.At <= limit && roomUsed[t.Handler] <= picker.Room(t.Handler) {
				found++
			}
		}
		if len(short) == 0 || found >= n {
			break
		}
		for _, k := range short {
			delete(ix.due, k.kind) // read it again, with more rows
		}
	}
	suspects, next := ix.dueSuspects(c, picker, now)
	due = append(due, suspects...)
	slices.SortStableFunc(due, func(a, b *machine.Task) int { return cmp.Compare(a.At, b.At) })
	skipped := picker.Skipped()
	if due = picker.Pick(due, n); len(due) == n {
		return due, next
	}
	if picker.Skipped() && !skipped {
		next = min(next, now) // due suspects of a group are in the place of others
	}
	var b pgx.Batch
	ix.loadDue(&b, slices.DeleteFunc(slices.Clone(kinds), func(k *dueRows) bool { return k.next != 0 }), 0, true)
	ix.send(&b)
	for _, k := range kinds {
		next = min(next, k.next)
		for _, t := range tasksOf(k) {
			if t.At > now {
				next = min(next, t.At)
			}
		}
	}
	return due, next
}

// dueSuspects returns the oldest due suspects that match a claim: those that it may get, and
// one more. next is when another suspect is due, or machine.Never.
func (ix *index) dueSuspects(c *store.Claim, picker *machine.Picker, now store.Time) (due []*machine.Task, next store.Time) {
	for size := c.Suspects + 1; ; size *= 4 {
		if d := ix.suspects; d == nil || !slices.Equal(d.schedules, c.Schedules) || slices.ContainsFunc(c.Handlers, func(h string) bool { return !slices.Contains(d.handlers, h) }) {
			var b pgx.Batch
			ix.loadSuspects(&b, c.Handlers, c.Schedules, size)
			ix.send(&b)
		}
		until := ix.suspects.until
		due, next = nil, machine.Never
		if until > now {
			next = until
		}
		roomUsed := make(map[string]int)
		for _, t := range ix.current(ix.suspects.tasks, func(t *machine.Task) bool {
			return t.State == store.Pending && t.Suspect && !t.Waits() && !t.Parked && t.At <= until && slices.Contains(c.Handlers, t.Handler) && (t.Schedule == "" || slices.Contains(c.Schedules, t.Schedule))
		}) {
			switch {
			case t.At > now:
				next = min(next, t.At)
			case roomUsed[t.Handler] < picker.Room(t.Handler):
				roomUsed[t.Handler]++
				due = append(due, t)
			}
		}
		if until > now || len(due) > c.Suspects {
			return due[:min(len(due), c.Suspects+1)], next
		}
		ix.suspects = nil
	}
}
