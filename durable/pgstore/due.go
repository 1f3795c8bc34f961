package pgstore

import (
	"cmp"
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

// kindsOf returns the kinds that a claim may get.
func (ix *index) kindsOf(c *store.Claim) (kinds []*dueRows) {
	for _, h := range c.Handlers {
		for i := -1; i < len(c.Schedules); i++ {
			k := kind{handler: h}
			if i >= 0 {
				k.schedule = c.Schedules[i]
			}
			kinds = append(kinds, cmp.Or(ix.due[k], &dueRows{kind: k}))
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
		for _, k := range ix.kindsOf(c) {
			if ix.due[k.kind] == nil && !ix.memory.isPaused(k.handler) {
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

// Due offers due tasks to the picker. If it takes fewer than n, next is when another task is
// due, or machine.Never.
func (ix *index) Due(c *store.Claim, picker *machine.Picker, now store.Time, n int) (due []*machine.Task, next store.Time) {
	if ix.numbers.Backdated != ix.memory.backdated {
		ix.memory.from = nil // the rows may lack tasks
		clear(ix.due)
		ix.memory.backdated = ix.numbers.Backdated
	}
	changed := make(map[kind][]*machine.Task)
	changedSuspects := make(map[string][]*machine.Task) // by handler
	for _, x := range ix.dirtyTasks {
		switch t := &x.Task; {
		case t.State != store.Pending || t.Waits() || t.Parked:
		case !t.Suspect:
			changed[kind{t.Handler, t.Schedule}] = append(changed[kind{t.Handler, t.Schedule}], t)
		case t.Schedule == "" || slices.Contains(c.Schedules, t.Schedule):
			changedSuspects[t.Handler] = append(changedSuspects[t.Handler], t)
		}
	}
	kinds := ix.kindsOf(c)
	var b pgx.Batch
	ix.loadDue(&b, slices.DeleteFunc(slices.Clone(kinds), func(k *dueRows) bool { return ix.due[k.kind] == k }), rowsOfKind(len(kinds), n), false)
	if d := ix.suspects; d == nil || !slices.Equal(d.schedules, c.Schedules) || slices.ContainsFunc(c.Handlers, func(h string) bool { return !slices.Contains(d.handlers, h) }) {
		ix.loadSuspects(&b, c.Handlers, c.Schedules, c.Suspects+1)
	}
	ix.send(&b)

	sources := make([]*machine.Source, 0, len(kinds)+len(c.Handlers))
	next = machine.Never
	// fill gives a source the due tasks, changed ones first, up to the time until which all
	// others were read. So the order of those that were offered stays when more are read.
	fill := func(s *machine.Source, changed []*machine.Task, stored []*cachedTask, until store.Time) {
		s.Tasks, s.More, s.At = nil, until <= now, until
		tasks := slices.Clone(changed)
		for _, x := range stored {
			if !x.dirty {
				tasks = append(tasks, &x.Task)
			}
		}
		for _, t := range tasks {
			switch {
			case t.At > now:
				next = min(next, t.At)
			case t.At <= until:
				s.Tasks = append(s.Tasks, t)
			}
		}
		slices.SortStableFunc(s.Tasks, func(a, b *machine.Task) int { return cmp.Compare(a.At, b.At) })
	}
	fillKind := func(s *machine.Source) {
		k := ix.due[kind{s.Handler, s.Schedule}]
		fill(s, changed[k.kind], k.tasks, k.until)
	}
	fillSuspects := func() {
		stored := make(map[string][]*cachedTask)
		for _, x := range ix.suspects.tasks {
			stored[x.Handler] = append(stored[x.Handler], x)
		}
		for _, s := range sources[len(kinds):] {
			fill(s, changedSuspects[s.Handler], stored[s.Handler], ix.suspects.until)
		}
	}
	for _, k := range kinds {
		s := &machine.Source{Handler: k.handler, Schedule: k.schedule}
		fillKind(s)
		sources = append(sources, s)
	}
	for _, h := range c.Handlers {
		sources = append(sources, &machine.Source{Handler: h, Suspect: true})
	}
	fillSuspects()

	due = picker.Merge(slices.Clone(sources), n, func(short []*machine.Source, _ int) {
		var b pgx.Batch
		s := short[0]
		if s.Suspect {
			ix.loadSuspects(&b, ix.suspects.handlers, ix.suspects.schedules, 4*len(ix.suspects.tasks))
			ix.send(&b)
			fillSuspects()
			return
		}
		k := ix.due[kind{s.Handler, s.Schedule}]
		ix.loadDue(&b, []*dueRows{k}, 4*len(k.tasks), false)
		ix.send(&b)
		fillKind(s)
	})
	if len(due) == n {
		return due, next
	}
	b = pgx.Batch{}
	ix.loadDue(&b, slices.DeleteFunc(slices.Clone(kinds), func(k *dueRows) bool { return k.next != 0 }), 0, true)
	ix.send(&b)
	for _, k := range kinds {
		next = min(next, k.next)
	}
	if until := ix.suspects.until; until > now {
		next = min(next, until)
	}
	return due, next
}
