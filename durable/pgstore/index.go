package pgstore

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/batch"
	"github.com/tickless/tickless/durable/store/machine"
)

type call = batch.Call[*index]

// An index implements machine.Index for one transaction. It has the rows that were read,
// with their changes, and writes them at the end. A query in between shows the rows as they
// were before, so each method puts the changed tasks in their place.
type index struct {
	ctx      context.Context
	session  session
	store    *Store
	shard    int
	memory   *memory    // of the transaction before; empty for readers
	fromPast store.Time // what memory.fromPast becomes
	// hasInbox says that tasks may wait in the inbox. The shard has horizon now, and
	// nextHorizon when they are drained.
	hasInbox             bool
	horizon, nextHorizon horizon
	inboxLeft            bool // more tasks wait than were drained

	now           machine.Moment
	numbers       numbers
	storedNumbers numbers
	tasks         map[string]*cachedTask
	dirtyTasks    []*cachedTask // changed, but not written
	documents     map[string]*document
	dirtyNames    []string // of changed documents
	limits        map[string]*machine.Limit
	storedLimits  map[string]machine.Limit
	due           map[kind]*dueRows
	suspects      *suspectRows // nil until they are read
	leases        *leases
	expiry        store.Time // when the first stored Past entry expires that Over has not read
	groups        map[machine.GroupKey]*cachedGroup
	firstGroups   *groupRows // nil until they are read
}

// A session is a connection or a transaction.
type session interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// numbers are a shard's numbers, as the version with the empty name has them.
type numbers struct {
	machine.Numbers
	// Backdated counts how often a task became Pending or Past with a time before that of its
	// command: see memory.
	Backdated int64 `json:",omitempty"`
	version   int64
	ends      store.Time // no lease ends earlier
	text      string     // as JSON, in the table
}

// A cachedTask is a task, with the stored values of its row.
type cachedTask struct {
	machine.Task
	storedTask store.Task // the task in the table
	hasRow     bool       // whether the table has the task
	ctid       string     // where the row is, if this transaction has read it; empty: unknown
	dirty      bool       // changed, but not written
}

// A document is what the table of versions has under a name other than the numbers'.
type document struct {
	version int64 // 0 if there is none
	sender  *machine.Sender
	dirty   bool
}

const limitsName = "\x01limits"

// A kind is a handler and a schedule.
type kind struct{ handler, schedule string }

// suspectRows are the pending suspects with one of the handlers and schedules, as stored, the
// oldest first.
type suspectRows struct {
	handlers, schedules []string
	tasks               []*cachedTask
	until               store.Time // all suspects that are due earlier are among them
}

// dueRows are the due tasks of a kind that are no suspects, as stored, the oldest first.
type dueRows struct {
	kind
	tasks []*cachedTask
	until store.Time // all tasks that are due earlier are among them
	// next is when the first task is due that was not due when the rows were read. It is 0 if
	// that was not read.
	next store.Time
}

// leases are the Running tasks whose leases had ended when the transaction began, and when
// the first other lease ends.
type leases struct {
	expired []*cachedTask
	next    store.Time
}

func must(err error) { batch.Must(err) }

func newIndex(ctx context.Context, session session, s *Store, x *shard, m *memory) *index {
	return &index{memory: m, ctx: ctx, session: session, store: s, shard: x.number, horizon: *x.horizon.Load(),
		tasks: make(map[string]*cachedTask), documents: make(map[string]*document), due: make(map[kind]*dueRows), groups: make(map[machine.GroupKey]*cachedGroup)}
}

// query adds a statement to a batch. It calls f for each row of the result.
func (ix *index) query(b *pgx.Batch, f func(rows pgx.Rows), statement string, args ...any) {
	b.Queue(ix.store.sql(statement), args...).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			f(rows)
		}
		return rows.Err()
	})
}

func (ix *index) send(b *pgx.Batch) {
	if b.Len() > 0 {
		must(ix.session.SendBatch(ix.ctx, b).Close())
	}
}

func (ix *index) queryNow(f func(rows pgx.Rows), statement string, args ...any) {
	var b pgx.Batch
	ix.query(&b, f, statement, args...)
	ix.send(&b)
}

const findDocuments = `SELECT n.name, coalesce(v.version, 0), coalesce(v.at, 0), coalesce(v.value, ''), c.now, c.xmin, c.server,
		EXISTS (SELECT FROM tickless.inbox WHERE shard = $1 AND tx >= $3::text::xid8)
	FROM (SELECT tickless.clock() AS now, pg_snapshot_xmin(pg_current_snapshot())::text AS xmin, pg_postmaster_start_time()::text AS server OFFSET 0) c
	CROSS JOIN unnest($2::text[]) n(name)
	LEFT JOIN LATERAL (SELECT version, at, value FROM tickless.versions WHERE shard = $1 AND name = n.name ORDER BY version DESC LIMIT 1) v ON true`

// loadDocuments adds a query for the numbers, if they were not read, and for documents.
func (ix *index) loadDocuments(b *pgx.Batch, names []string) {
	var missing []string
	for _, n := range names {
		if ix.documents[n] == nil {
			ix.documents[n] = new(document)
			missing = append(missing, n)
		}
	}
	if ix.now.Boot == "" {
		missing = append(missing, "")
	}
	if missing == nil {
		return
	}
	ix.query(b, func(rows pgx.Rows) {
		var name string
		var current horizon
		var version, at, now int64
		var value []byte
		var hasInbox bool
		must(rows.Scan(&name, &version, &at, &value, &now, &current.from, &current.server, &hasInbox))
		switch d := ix.documents[name]; {
		case name == "":
			ix.now = machine.Moment{Wall: store.Time(now), Steady: ix.store.steady(), Boot: ix.store.steadyName}
			ix.hasInbox, ix.nextHorizon = hasInbox, current
			if current.server != ix.horizon.server {
				ix.hasInbox, ix.horizon.from = true, "0"
				ix.memory.backdated = -1 // the server may lack the latest commands
			}
			must(json.Unmarshal(value, &ix.numbers))
			ix.numbers.version, ix.numbers.ends, ix.numbers.text = version, store.Time(at), string(value)
			ix.storedNumbers = ix.numbers
		case version == 0:
		case name == limitsName:
			d.version = version
			must(json.Unmarshal(value, &ix.storedLimits))
		default:
			d.version, d.sender = version, new(machine.Sender)
			must(json.Unmarshal(value, d.sender))
		}
	}, findDocuments, ix.shard, missing, ix.horizon.from)
}

const (
	// The subquery with LIMIT, and ctid = ANY elsewhere, fix the plan. A plan that was made
	// while the table was small could otherwise read all rows of the shard.
	findTasks = `SELECT ` + taskColumns + ` FROM unnest($2::text[]) k(id)
		CROSS JOIN LATERAL (SELECT t.ctid, t.* FROM tickless.tasks t WHERE t.shard = $1 AND t.id = k.id LIMIT 1) t`
	// findIfChanged selects nothing if nobody has changed the shard since it had some numbers.
	findIfChanged = findTasks + ` WHERE (SELECT value FROM tickless.versions WHERE shard = $1 AND name = '' ORDER BY version DESC LIMIT 1) <> $3`
)

// loadTasks adds a query for the tasks that are not cached.
func (ix *index) loadTasks(b *pgx.Batch, ids []string) {
	var missing []string
	for _, id := range ids {
		if ix.tasks[id] == nil {
			ix.tasks[id] = new(cachedTask)
			missing = append(missing, encodeID(id))
		}
	}
	if missing != nil {
		ix.query(b, func(rows pgx.Rows) {
			x := scanTask(rows)
			ix.tasks[x.ID] = x
		}, findTasks, ix.shard, missing)
	}
}

// A memory is what a shard remembers after its latest transaction.
type memory struct {
	// running are the running tasks, for their reports. They are valid while the shard has the
	// same numbers. Its version alone does not tell: after a failover to a standby that lags,
	// other commands may have the same.
	numbers string
	running map[string]*cachedTask
	// from says from which time on there are due tasks of a kind, and fromPast Past entries, so
	// that a claim does not meet the dead rows of earlier tasks while an old snapshot keeps
	// them. They are valid while numbers.Backdated is the same.
	backdated int64
	from      map[kind]store.Time
	fromPast  store.Time
	isBusy    bool // more tasks were due than were claimed
	// paused are the handlers that were paused when the limits were last read: a claim does
	// not read their tasks in advance.
	paused    map[string]bool
	hasGroups bool // some groups have a state
}

// slack is how long before a command's time a task may become due without being backdated.
const slack = store.Time(time.Second / time.Microsecond)

// Limits of what a memory has: the running tasks, and the bytes in the record of such a
// task.
const (
	maxRunning  = 1000
	smallRecord = 1 << 10
)

// loadRemembered takes tasks from the memory. It adds a query in case they have changed.
func (ix *index) loadRemembered(b *pgx.Batch, m *memory, ids []string) {
	var remembered []string
	for _, id := range ids {
		if x := m.running[id]; x != nil && ix.tasks[id] == nil {
			ix.tasks[id] = x
			remembered = append(remembered, encodeID(id))
		}
	}
	if remembered == nil {
		return
	}
	var changed []*cachedTask
	b.Queue(ix.store.sql(findIfChanged), ix.shard, remembered, m.numbers).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			changed = append(changed, scanTask(rows))
		}
		if ix.numbers.text != m.numbers {
			for _, id := range remembered {
				ix.tasks[decodeID(id)] = new(cachedTask)
			}
			for _, x := range changed {
				ix.tasks[x.ID] = x
			}
		}
		return rows.Err()
	})
}

// remember returns the memory after the transaction has committed.
func (ix *index) remember(m memory) memory {
	if m.from == nil || ix.numbers.Backdated != m.backdated {
		m.from, m.fromPast, m.backdated = make(map[kind]store.Time), 0, ix.numbers.Backdated
	}
	if len(ix.due) > 0 {
		m.isBusy = false
	}
	for k, d := range ix.due {
		from := min(d.until, ix.now.Wall-slack)
		if i := slices.IndexFunc(d.tasks, func(x *cachedTask) bool { return !x.dirty }); i >= 0 {
			from = min(from, d.tasks[i].At)
			m.isBusy = m.isBusy || d.tasks[i].At <= ix.now.Wall
		}
		m.from[k] = from
		m.isBusy = m.isBusy || d.until <= ix.now.Wall
	}
	m.fromPast = max(m.fromPast, ix.fromPast)
	if ix.numbers.Limits == 0 {
		m.paused = nil
	} else if ix.limits != nil {
		m.paused = make(map[string]bool)
		for h, l := range ix.limits {
			m.paused[h] = l.Paused != 0
		}
	}
	if ix.storedNumbers.text != m.numbers || m.running == nil {
		m.running = make(map[string]*cachedTask)
	}
	for id, x := range ix.tasks {
		if x.State == store.Running && len(x.Record) <= smallRecord && len(m.running) < maxRunning {
			x.storedTask, x.hasRow, x.dirty, x.ctid = x.Task.Task, true, false, ""
			m.running[id] = x
		} else {
			delete(m.running, id)
		}
	}
	m.numbers, m.hasGroups = ix.numbers.text, ix.numbers.Groups > 0
	return m
}

func (ix *index) Numbers() *machine.Numbers { return &ix.numbers.Numbers }

func (ix *index) Now() machine.Moment { return ix.now }

// CheckRows returns nil: the server checks its pages.
func (ix *index) CheckRows(string, []string) error { return nil }

func (ix *index) findTask(id string) *cachedTask {
	var b pgx.Batch
	ix.loadTasks(&b, []string{id})
	ix.send(&b)
	return ix.tasks[id]
}

// Find returns the task with an id, or nil.
func (ix *index) Find(id string) *machine.Task {
	if x := ix.findTask(id); x.State != 0 {
		return &x.Task
	}
	return nil
}

// Add returns a new task.
func (ix *index) Add(id string) *machine.Task {
	x := ix.findTask(id)
	x.Task = machine.Task{}
	return &x.Task
}

// Changed notes that a task has changed, so that writeChanges writes it.
func (ix *index) Changed(t *machine.Task) {
	if x := ix.tasks[t.ID]; !x.dirty {
		x.dirty = true
		ix.dirtyTasks = append(ix.dirtyTasks, x)
	}
}

// cache returns the cached task of a row that was read.
func (ix *index) cache(x *cachedTask) *cachedTask {
	if y := ix.tasks[x.ID]; y != nil {
		return y
	}
	ix.tasks[x.ID] = x
	return x
}

// current returns the tasks that match: those of stored that have not changed, and the
// changed ones. The oldest come first.
func (ix *index) current(stored []*cachedTask, match func(t *machine.Task) bool) (tasks []*machine.Task) {
	for _, x := range stored {
		if !x.dirty && match(&x.Task) {
			tasks = append(tasks, &x.Task)
		}
	}
	for _, x := range ix.dirtyTasks {
		if x.State != 0 && match(&x.Task) {
			tasks = append(tasks, &x.Task)
		}
	}
	slices.SortStableFunc(tasks, func(a, b *machine.Task) int { return cmp.Compare(a.At, b.At) })
	return tasks
}

const (
	firstEnd = `(SELECT at FROM tickless.versions WHERE shard = $1 AND name = '' ORDER BY version DESC LIMIT 1)`
	nextEnd  = `SELECT coalesce(min(at), $2) FROM (SELECT at FROM tickless.tasks WHERE shard = $1 AND state > 1 AND state = 2
		AND at > (SELECT tickless.clock()) AND at >= ` + firstEnd + ` ORDER BY at LIMIT 1) t`
	expiredTasks = `SELECT ` + taskColumns + ` FROM tickless.tasks t WHERE t.shard = $1 AND t.state > 1 AND t.state = 2
		AND t.at >= ` + firstEnd + ` AND t.at <= (SELECT tickless.clock()) ORDER BY t.at`
	runningTasks = `SELECT ` + taskColumns + ` FROM tickless.tasks t WHERE t.shard = $1 AND t.state > 1 AND t.state = 2`
	overTasks    = `SELECT ` + taskColumns + ` FROM tickless.tasks t WHERE t.shard = $1 AND t.state > 1 AND t.state = 4 AND t.at >= $4 AND t.at <= $2 ORDER BY t.at LIMIT $3`
	nextExpiry   = `SELECT coalesce(min(at), $3) FROM tickless.tasks WHERE shard = $1 AND state > 1 AND state = 4 AND at > $2`
	countOver    = `SELECT count(*) FROM tickless.tasks WHERE shard = $1 AND state > 1 AND state = 4 AND at <= $2`
)

// loadLeases adds queries for expired leases.
func (ix *index) loadLeases(b *pgx.Batch) {
	l := new(leases)
	ix.leases = l
	ix.query(b, func(rows pgx.Rows) { must(rows.Scan((*int64)(&l.next))) }, nextEnd, ix.shard, int64(machine.Never))
	ix.query(b, func(rows pgx.Rows) { l.expired = append(l.expired, ix.cache(scanTask(rows))) }, expiredTasks, ix.shard)
}

func (ix *index) needLeases() *leases {
	if ix.leases == nil {
		var b pgx.Batch
		ix.loadLeases(&b)
		ix.send(&b)
	}
	return ix.leases
}

// Running returns the tasks whose lease ends at or before until.
func (ix *index) Running(until store.Time) []*machine.Task {
	var stored []*cachedTask
	if until == machine.Never {
		ix.queryNow(func(rows pgx.Rows) { stored = append(stored, ix.cache(scanTask(rows))) }, runningTasks, ix.shard)
	} else {
		stored = ix.needLeases().expired
	}
	return ix.current(stored, func(t *machine.Task) bool { return t.State == store.Running && t.At <= until })
}

// End returns when the first lease ends, or machine.Never. It may return an earlier time.
func (ix *index) End() store.Time {
	l := ix.needLeases()
	end := l.next
	for _, t := range ix.current(l.expired, func(t *machine.Task) bool { return t.State == store.Running }) {
		end = min(end, t.At)
	}
	return end
}

func (ix *index) pastFrom() store.Time {
	if ix.numbers.Backdated != ix.memory.backdated {
		return 0
	}
	return ix.memory.fromPast
}

// Over returns up to n Past entries that have expired.
func (ix *index) Over(now store.Time, n int) []*machine.Task {
	var stored []*cachedTask
	var b pgx.Batch
	ix.query(&b, func(rows pgx.Rows) { stored = append(stored, ix.cache(scanTask(rows))) }, overTasks, ix.shard, int64(now), n, int64(ix.pastFrom()))
	ix.query(&b, func(rows pgx.Rows) { must(rows.Scan((*int64)(&ix.expiry))) }, nextExpiry, ix.shard, int64(now), int64(machine.Never))
	ix.send(&b)
	ix.fromPast = now - slack
	if len(stored) > 0 {
		ix.fromPast = min(ix.fromPast, stored[0].At)
	}
	if len(stored) == n {
		ix.expiry = now // perhaps
	}
	found := ix.current(stored, func(t *machine.Task) bool { return t.State == store.Past && t.At <= now })
	return found[:min(n, len(found))]
}

// Expiry returns when the first Past entry expires, or earlier. Over must have been called.
func (ix *index) Expiry() store.Time {
	at := ix.expiry
	for _, x := range ix.dirtyTasks {
		if x.State == store.Past {
			at = min(at, x.At)
		}
	}
	return at
}

// Expired counts the Past entries that have expired. It does not see changes.
func (ix *index) Expired(now store.Time) (n int64) {
	ix.queryNow(func(rows pgx.Rows) { must(rows.Scan(&n)) }, countOver, ix.shard, int64(now))
	return n
}

func (ix *index) findDocument(name string) *document {
	var b pgx.Batch
	ix.loadDocuments(&b, []string{name})
	ix.send(&b)
	return ix.documents[name]
}

func (ix *index) changeDocument(d *document, name string) {
	if !d.dirty {
		d.dirty = true
		ix.dirtyNames = append(ix.dirtyNames, name)
	}
}

// Limits returns the limits by handler.
func (ix *index) Limits() map[string]*machine.Limit {
	if ix.limits == nil {
		ix.findDocument(limitsName)
		ix.limits = make(map[string]*machine.Limit)
		for h, l := range ix.storedLimits {
			ix.limits[h] = &l
		}
	}
	return ix.limits
}

// Overdue counts the due tasks by handler and schedule. It does not see changes.
func (ix *index) Overdue(now store.Time) (out []machine.Kind) {
	ix.queryNow(func(rows pgx.Rows) {
		var k machine.Kind
		must(rows.Scan(&k.Handler, &k.Schedule, &k.Tasks, (*int64)(&k.First)))
		out = append(out, k)
	}, countDue, ix.shard, int64(now))
	return out
}

func (ix *index) Sender(name string) *machine.Sender { return ix.findDocument(name).sender }

// Remember stores a sender's record, or deletes it if x is nil.
func (ix *index) Remember(name string, x *machine.Sender) {
	d := ix.findDocument(name)
	d.sender = x
	ix.changeDocument(d, name)
}

// Gone returns senders whose last command was before a time. It checks at most 64 versions,
// whose names follow that of a sender of this transaction.
func (ix *index) Gone(before store.Time, n int) (names []string) {
	var from string
	for name := range ix.documents {
		from = name
	}
	ix.queryNow(func(rows pgx.Rows) {
		var name string
		must(rows.Scan(&name))
		if d := ix.documents[name]; d == nil || d.sender != nil && d.sender.Seen < before {
			names = append(names, name)
		}
	}, goneSenders, ix.shard, from, int64(before), n)
	return names
}

// Workers returns the workers. It does not see changes. A worker sends a round at least
// every maxSleep.
func (ix *index) Workers(now store.Time) (out []*machine.Sender) {
	ix.queryNow(func(rows pgx.Rows) {
		var text []byte
		x := new(machine.Sender)
		must(rows.Scan(&text))
		must(json.Unmarshal(text, x))
		x.Lost = store.IsSilent(x.Seen, now, max(maxSleep, x.Claim.Lease))
		out = append(out, x)
	}, workers, ix.shard)
	return out
}

const (
	goneSenders = `SELECT name FROM (SELECT name, at FROM tickless.versions WHERE shard = $1 AND name > $2 AND name > '!' ORDER BY name, version LIMIT 64) v WHERE at < $3 LIMIT $4`
	workers     = `SELECT value FROM tickless.versions WHERE shard = $1 AND worker`

	insertTasks = `INSERT INTO tickless.tasks (shard, id, state, at, handler, schedule, record, due, attempts, token, lease, more, suspect, worker, version, grp)
		SELECT $1, * FROM unnest($2::text[], $3::int2[], $4::int8[], $5::text[], $6::text[], $7::bytea[], $8::int8[], $9::int4[], $10::int8[], $11::int8[], $12::text[], $13::bool[], $14::int8[], $15::int8[], $16::text[])`
	moveTasks = `UPDATE tickless.tasks t SET state = x.state, at = x.at, due = x.due, attempts = x.attempts, token = x.token, lease = x.lease, more = x.more, suspect = x.suspect, worker = x.worker, version = x.version
		FROM (SELECT *, coalesce(ctid::tid, (SELECT t.ctid FROM tickless.tasks t WHERE t.shard = $1 AND t.id = x.id)) AS tid
			FROM unnest($2::text[], $3::text[], $4::int2[], $5::int8[], $6::int8[], $7::int4[], $8::int8[], $9::int8[], $10::text[], $11::bool[], $12::int8[], $13::int8[]) x(id, ctid, state, at, due, attempts, token, lease, more, suspect, worker, version)
			OFFSET 0) x WHERE t.ctid = x.tid`
	deleteTasks   = `DELETE FROM tickless.tasks WHERE ctid = ANY (ARRAY(SELECT (SELECT t.ctid FROM tickless.tasks t WHERE t.shard = $1 AND t.id = k.id) FROM unnest($2::text[]) k(id)))`
	writeVersions = `WITH old AS (DELETE FROM tickless.versions WHERE ctid = ANY (ARRAY(SELECT (SELECT v.ctid FROM tickless.versions v WHERE v.shard = $1 AND v.name = x.name AND v.version = x.version)
			FROM unnest($8::text[], $9::int8[]) x(name, version))))
		INSERT INTO tickless.versions (shard, version, wakes, name, at, worker, value) SELECT $1, $2, $3, * FROM unnest($4::text[], $5::int8[], $6::bool[], $7::text[])`
)

// isSameSlice reports whether two records are the same slice. That is enough, because
// package machine never changes the bytes of a record.
func isSameSlice(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// writeChanges adds statements that write all changes.
func (ix *index) writeChanges(b *pgx.Batch) {
	var gone []string
	var inserted, moved taskRows
	if ix.now.Wall < ix.storedNumbers.Wall {
		ix.numbers.Backdated++
	}
	if ix.leases != nil {
		ix.numbers.ends = ix.leases.next
		for _, x := range ix.leases.expired {
			if !x.dirty {
				ix.numbers.ends = min(ix.numbers.ends, x.At)
			}
		}
	}
	for _, x := range ix.dirtyTasks {
		t := &x.Task
		switch {
		case t.State == 0, !x.hasRow, t.Handler != x.storedTask.Handler, t.Schedule != x.storedTask.Schedule, t.Group != x.storedTask.Group, !isSameSlice(t.Record, x.storedTask.Record):
			if x.hasRow {
				gone = append(gone, encodeID(x.storedTask.ID))
			}
			if t.State != 0 {
				inserted.add(x)
			}
		default:
			moved.add(x)
		}
		switch {
		case t.State == store.Running:
			ix.numbers.ends = min(ix.numbers.ends, t.At)
		case (t.State == store.Pending && !t.Waits() && !t.Parked || t.State == store.Past) && t.At < ix.now.Wall-slack:
			ix.numbers.Backdated++
		}
	}
	exec := func(statement string, args ...any) {
		b.Queue(ix.store.sql(statement), append([]any{ix.shard}, args...)...)
	}
	if gone != nil {
		exec(deleteTasks, gone)
	}
	if r := &inserted; r.ids != nil {
		exec(insertTasks, r.ids, r.states, r.ats, r.handlers, r.schedules, r.records, r.dues, r.attempts, r.tokens, r.leases, r.more, r.suspects, r.workers, r.versions, r.groups)
	}
	if r := &moved; r.ids != nil {
		exec(moveTasks, r.ids, r.ctids, r.states, r.ats, r.dues, r.attempts, r.tokens, r.leases, r.more, r.suspects, r.workers, r.versions)
	}
	ix.writeGroups(exec)
	ix.writeVersions(exec)
}

// writeVersions writes the numbers and the changed documents.
func (ix *index) writeVersions(exec func(statement string, args ...any)) {
	ix.numbers.text = encodeJSON(&ix.numbers)
	oldNames, oldVersions := []string{""}, []int64{ix.numbers.version}
	names, ats, areWorkers, values := []string{""}, []int64{int64(ix.numbers.ends)}, []bool{false}, []string{ix.numbers.text}
	add := func(name string, at store.Time, worker bool, value any) {
		names, ats, areWorkers, values = append(names, name), append(ats, int64(at)), append(areWorkers, worker), append(values, encodeJSON(value))
	}
	if ix.limitsChanged() {
		ix.changeDocument(ix.documents[limitsName], limitsName)
	}
	for _, name := range ix.dirtyNames {
		d := ix.documents[name]
		if d.version != 0 {
			oldNames, oldVersions = append(oldNames, name), append(oldVersions, d.version)
		}
		switch {
		case name == limitsName:
			add(name, 0, false, ix.limits)
		case d.sender != nil:
			add(name, d.sender.Seen, d.sender.Claim != nil, d.sender)
		}
	}
	exec(writeVersions, ix.numbers.version+1, ix.numbers.Wakes, names, ats, areWorkers, values, oldNames, oldVersions)
}

func (ix *index) limitsChanged() bool {
	if ix.limits == nil {
		return false
	}
	for h, l := range ix.limits {
		if old, ok := ix.storedLimits[h]; !ok || old != *l {
			return true
		}
	}
	return len(ix.limits) != len(ix.storedLimits)
}
