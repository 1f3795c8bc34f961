package pgstore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

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
	conn     *pgxpool.Conn
	store    *Store
	shard    int
	memory   *memory    // of the transaction before; empty for readers
	fromPast store.Time // what memory.fromPast becomes
	// hasInbox says that tasks may wait in the inbox. The shard has horizon now, and
	// nextHorizon when they are drained.
	hasInbox             bool
	horizon, nextHorizon horizon
	inboxLeft            bool // more tasks wait than were drained
	guesses              bool // see guess

	now           machine.Moment
	numbers       numbers
	storedNumbers numbers
	tasks         map[string]*cachedTask
	dirtyTasks    []*cachedTask // changed, but not written
	documents     map[string]*document
	dirtyNames    []string                  // of changed documents
	limits        map[string]*machine.Limit // nil until they are read
	storedLimits  string                    // as JSON
	due           map[kind]*dueRows
	suspects      *suspectRows // nil until they are read
	leases        *leases
	expiry        store.Time // when the first stored Past entry expires that Over has not read
	groups        map[machine.GroupKey]*cachedGroup
	firstGroups   *groupRows // nil until they are read
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

func newIndex(ctx context.Context, conn *pgxpool.Conn, s *Store, x *shard, m *memory) *index {
	return &index{memory: m, ctx: ctx, conn: conn, store: s, shard: x.number, horizon: *x.horizon.Load(),
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
		if ix.guesses {
			must(errNotRemembered)
		}
		must(ix.conn.SendBatch(ix.ctx, b).Close())
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
	before := ix.store.steady() // so that a later time by this clock is never before the server's
	ix.query(b, func(rows pgx.Rows) {
		var name string
		var current horizon
		var version, at, now int64
		var value []byte
		var hasInbox bool
		must(rows.Scan(&name, &version, &at, &value, &now, &current.from, &current.server, &hasInbox))
		switch d := ix.documents[name]; {
		case name == "":
			ix.now = machine.Moment{Wall: store.Time(now), Steady: before, Boot: ix.store.steadyName}
			ix.hasInbox, ix.nextHorizon = hasInbox, current
			if current.server != ix.horizon.server {
				ix.hasInbox, ix.horizon.from = true, "0"
				ix.memory.backdated = -1 // the server may lack the latest commands
			}
			must(json.Unmarshal(value, &ix.numbers))
			ix.numbers.version, ix.numbers.ends, ix.numbers.text = version, store.Time(at), string(value)
			ix.storedNumbers = ix.numbers
			// Its text may be the same if the clocks stand: a repeated command changes only its
			// sender, and a repeated claim only leases.
			if ix.numbers.text != ix.memory.numbers.text || version != ix.memory.numbers.version {
				for id := range ix.memory.running {
					if ix.tasks[id] != nil {
						ix.tasks[id] = new(cachedTask)
					}
				}
				ix.memory.running, ix.memory.senders, ix.memory.calm = nil, nil, 0
			}
		case version == 0:
		case name == limitsName:
			d.version = version
			ix.storedLimits = string(value)
		default:
			d.version, d.sender = version, new(machine.Sender)
			must(json.Unmarshal(value, d.sender))
		}
	}, findDocuments, ix.shard, missing, ix.horizon.from)
}

const (
	latestNumbers = `FROM tickless.versions WHERE shard = $1 AND name = '' ORDER BY version DESC LIMIT 1`
	// findTasks selects tasks, but remembered ones only if the shard has other numbers, or another
	// version of them. The subquery with LIMIT, and ctid = ANY elsewhere, fix the plan. A plan that
	// was made while the table was small could otherwise read all rows of the shard.
	findTasks = `SELECT t.* FROM unnest($2::text[], $3::bool[]) k(id, remembered)
		CROSS JOIN LATERAL (SELECT ` + taskColumns + ` FROM tickless.tasks WHERE shard = $1 AND id = k.id LIMIT 1) t
		WHERE NOT k.remembered OR (SELECT value <> $4 OR version <> $5 ` + latestNumbers + `)`
)

// loadTasks adds a query for the tasks that are not cached. It takes remembered tasks, which
// loadDocuments drops if they may have changed.
func (ix *index) loadTasks(b *pgx.Batch, ids []string) {
	var missing []string
	var remembered []bool
	for _, id := range ids {
		if ix.tasks[id] == nil {
			x := ix.memory.running[id]
			missing, remembered = append(missing, encodeID(id)), append(remembered, x != nil)
			ix.tasks[id] = cmp.Or(x, new(cachedTask))
		}
	}
	if missing != nil {
		ix.query(b, func(rows pgx.Rows) {
			x := scanTask(rows)
			ix.tasks[x.ID] = x
		}, findTasks, ix.shard, missing, remembered, ix.memory.numbers.text, ix.memory.numbers.version)
	}
}

// A memory is what a shard remembers after its latest transaction.
type memory struct {
	// running are the running tasks, for their reports, and senders the latest commands. They
	// are valid while the shard has the same numbers. Its version alone does not tell: after a
	// failover to a standby that lags, other commands may have the same.
	numbers numbers
	running map[string]*cachedTask
	senders map[string]*document
	calm    int // how many transactions since another Store has changed the shard: see guess
	// from says where the due tasks of a kind begin, and fromPast the Past entries, so that a
	// claim does not meet the dead rows of earlier tasks. They are valid while
	// numbers.Backdated is the same.
	backdated int64
	from      map[kind]position
	fromPast  store.Time
	isBusy    bool // more tasks were due than were claimed
	// limits are those that were last read. A claim does not read the tasks of handlers in
	// advance that were paused then.
	limits map[string]*machine.Limit
}

func (m *memory) isPaused(handler string) bool {
	l := m.limits[handler]
	return l != nil && l.Paused != 0
}

// A position is one in the order of an index: by time, then by id as stored.
type position struct {
	at store.Time
	id string
}

// slack is how long before a command's time a task may become due without being backdated.
const slack = store.Time(time.Second / time.Microsecond)

// Limits of what a memory has: the running tasks, the senders, and the bytes in the record of
// a running task.
const (
	maxRunning  = 1000
	maxSenders  = 1000
	smallRecord = 1 << 10
)

// remember returns the memory after the transaction has committed.
func (ix *index) remember(m memory) memory {
	if ix.numbers.Backdated != m.backdated {
		m.from, m.fromPast, m.backdated = make(map[kind]position), 0, ix.numbers.Backdated
	} else {
		m.noteClaimed(ix)
	}
	if ix.limits != nil || ix.numbers.Limits == 0 {
		m.limits = ix.limits
	}
	if m.running == nil {
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
	if m.senders == nil || len(m.senders) > maxSenders {
		m.senders = make(map[string]*document)
	}
	for name, d := range ix.documents {
		if d.dirty {
			d.version, d.dirty = ix.numbers.version, false
		}
		if d.sender != nil {
			m.senders[name] = d
		} else {
			delete(m.senders, name)
		}
	}
	m.numbers = ix.numbers
	m.calm++
	return m
}

// noteClaimed notes where the tasks begin that the transaction's claims have left.
func (m *memory) noteClaimed(ix *index) {
	if m.from == nil {
		m.from = make(map[kind]position)
	}
	if len(ix.due) > 0 {
		m.isBusy = false
	}
	for k, d := range ix.due {
		from, p := position{at: ix.now.Wall - slack}, position{at: d.until}
		if i := slices.IndexFunc(d.tasks, func(x *cachedTask) bool { return !x.dirty }); i >= 0 {
			p = position{d.tasks[i].At, encodeID(d.tasks[i].ID)}
			m.isBusy = m.isBusy || p.at <= ix.now.Wall
		} else if n := len(d.tasks); n > 0 {
			p.id = encodeID(d.tasks[n-1].ID)
		}
		if cmp.Or(cmp.Compare(p.at, from.at), cmp.Compare(p.id, from.id)) < 0 {
			from = p
		}
		m.isBusy = m.isBusy || d.until <= ix.now.Wall
		m.from[k] = from
	}
	m.fromPast = max(m.fromPast, ix.fromPast)
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
	// The last row of expiredTasks and of overTasks is a nextTask.
	expiredTasks = `SELECT t.* FROM (SELECT tickless.clock() AS now, (SELECT at ` + latestNumbers + `) AS ends OFFSET 0) c CROSS JOIN LATERAL (
		(SELECT ` + taskColumns + ` FROM tickless.tasks WHERE shard = $1 AND state > 1 AND state = 2 AND at >= c.ends AND at <= c.now ORDER BY at)
		UNION ALL (SELECT ` + nextTask + ` FROM tickless.tasks WHERE shard = $1 AND state > 1 AND state = 2 AND at >= c.ends AND at > c.now ORDER BY at LIMIT 1)) t`
	runningTasks = `SELECT ` + taskColumns + ` FROM tickless.tasks WHERE shard = $1 AND state > 1 AND state = 2`
	overTasks    = `(SELECT ` + taskColumns + ` FROM tickless.tasks WHERE shard = $1 AND state > 1 AND state = 4 AND at >= $4 AND at <= $2 ORDER BY at LIMIT $3)
		UNION ALL (SELECT ` + nextTask + ` FROM tickless.tasks WHERE shard = $1 AND state > 1 AND state = 4 AND at > $2 ORDER BY at LIMIT 1)`
	countOver = `SELECT count(*) FROM tickless.tasks WHERE shard = $1 AND state > 1 AND state = 4 AND at <= $2`
)

// queryTasks adds a query that calls add for each task as stored. It sets next to the time of a
// nextTask, or to machine.Never.
func (ix *index) queryTasks(b *pgx.Batch, next *store.Time, add func(x *cachedTask), statement string, args ...any) {
	*next = machine.Never
	ix.query(b, func(rows pgx.Rows) {
		if x := scanTask(rows); x.State != 0 {
			add(x)
		} else {
			*next = x.At
		}
	}, statement, args...)
}

// loadLeases adds a query for expired leases.
func (ix *index) loadLeases(b *pgx.Batch) {
	l := new(leases)
	ix.leases = l
	ix.queryTasks(b, &l.next, func(x *cachedTask) { l.expired = append(l.expired, ix.cache(x)) }, expiredTasks, ix.shard)
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
	ix.queryTasks(&b, &ix.expiry, func(x *cachedTask) { stored = append(stored, ix.cache(x)) }, overTasks, ix.shard, int64(now), n, int64(ix.pastFrom()))
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

// Limits returns the limits by handler.
func (ix *index) Limits() map[string]*machine.Limit {
	if ix.limits == nil {
		ix.findDocument(limitsName)
		ix.limits = make(map[string]*machine.Limit)
		if ix.storedLimits != "" {
			must(json.Unmarshal([]byte(ix.storedLimits), &ix.limits))
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
	if !d.dirty {
		d.dirty = true
		ix.dirtyNames = append(ix.dirtyNames, name)
	}
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

	moveTasks = `UPDATE tickless.tasks t SET state = x.state, at = x.at, due = x.due, attempts = x.attempts, token = x.token, lease = x.lease, more = x.more, suspect = x.suspect, worker = x.worker, version = x.version
		FROM (SELECT *, coalesce(ctid::tid, (SELECT t.ctid FROM tickless.tasks t WHERE t.shard = $1 AND t.id = x.id)) AS tid
			FROM unnest($2::text[], $3::text[], $4::int2[], $5::int8[], $6::int8[], $7::int4[], $8::int8[], $9::int8[], $10::text[], $11::bool[], $12::int8[], $13::int8[]) x(id, ctid, state, at, due, attempts, token, lease, more, suspect, worker, version)
			OFFSET 0) x WHERE t.ctid = x.tid`
	deleteTasks = `DELETE FROM tickless.tasks WHERE ctid = ANY (ARRAY(SELECT (SELECT t.ctid FROM tickless.tasks t WHERE t.shard = $1 AND t.id = k.id) FROM unnest($2::text[]) k(id)))`

	// In these, %s is for addTasks, and ? for the next parameter.
	insertInto = `INSERT INTO tickless.tasks (shard, id, handler, schedule, record, grp, state, at, due, attempts, token, lease, more, suspect, worker, version)
		SELECT $1, x.* FROM %s unnest(?::text[], ?::text[], ?::text[], ?::bytea[], ?::text[], ?::int2[], ?::int8[], ?::int8[], ?::int4[], ?::int8[], ?::int8[], ?::text[], ?::bool[], ?::int8[], ?::int8[]) x`
	replaceVersions = `old AS (DELETE FROM tickless.versions WHERE ctid = ANY (ARRAY(SELECT (SELECT v.ctid FROM tickless.versions v WHERE v.shard = $1 AND v.name = x.name AND v.version = x.version)
			FROM %[1]s unnest(?::text[], ?::int8[]) x(name, version))))
		INSERT INTO tickless.versions (shard, version, wakes, name, at, worker, value) SELECT $1, ?::int8, ?::int8, x.* FROM %[1]s unnest(?::text[], ?::int8[], ?::bool[], ?::text[]) x`
	// isSame selects a row if the shard has some numbers, its inbox is empty, none of some tasks
	// exists, and the time is the one that was assumed: see guess.
	isSame = `SELECT WHERE (?::int8, ?::text) = (SELECT version, value ` + latestNumbers + `) AND abs(tickless.clock() - ?::int8) < ?::int8
		AND pg_postmaster_start_time()::text = ? AND NOT EXISTS (SELECT FROM tickless.inbox WHERE shard = $1 AND tx >= ?::text::xid8)
		AND NOT EXISTS (SELECT FROM unnest(?::text[]) k(id) CROSS JOIN LATERAL (SELECT FROM tickless.tasks t WHERE t.shard = $1 AND t.id = k.id LIMIT 1) t)`
)

var (
	insertTasks   = number(fmt.Sprintf(insertInto, ""))
	writeVersions = number(`WITH ` + fmt.Sprintf(replaceVersions, ""))
	// addTasks does both if isSame selects a row.
	addTasks = number(`WITH same AS MATERIALIZED (` + isSame + `), added AS (` + fmt.Sprintf(insertInto, "same,") + `), ` + fmt.Sprintf(replaceVersions, "same,"))
)

// number numbers the parameters of a statement that are written as a question mark. $1 is the shard.
func number(statement string) string {
	parts := strings.Split(statement, "?")
	for i := range parts[1:] {
		parts[i] += fmt.Sprint("$", i+2)
	}
	return strings.Join(parts, "")
}

// isSameSlice reports whether two records are the same slice. That is enough, because
// package machine never changes the bytes of a record.
func isSameSlice(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// changes returns what becomes of the changed tasks' rows.
func (ix *index) changes() (gone []string, inserted, moved []*cachedTask) {
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
				inserted = append(inserted, x)
			}
		default:
			moved = append(moved, x)
		}
		switch {
		case t.State == store.Running:
			ix.numbers.ends = min(ix.numbers.ends, t.At)
		case (t.State == store.Pending && !t.Waits() && !t.Parked || t.State == store.Past) && t.At < ix.now.Wall-slack:
			ix.numbers.Backdated++
		}
	}
	return gone, inserted, moved
}

// writeChanges adds statements that write all changes.
func (ix *index) writeChanges(b *pgx.Batch) {
	gone, inserted, moved := ix.changes()
	exec := func(statement string, args ...any) {
		b.Queue(ix.store.sql(statement), append([]any{ix.shard}, args...)...)
	}
	if gone != nil {
		exec(deleteTasks, gone)
	}
	if inserted != nil {
		exec(insertTasks, insertedColumns(inserted)...)
	}
	if moved != nil {
		exec(moveTasks, movedColumns(moved)...)
	}
	ix.writeGroups(exec)
	exec(writeVersions, ix.newVersions()...)
}

// newVersions returns the parameters of writeVersions for the numbers and the changed documents.
func (ix *index) newVersions() []any {
	var oldNames, names, values []string
	var oldVersions, ats []int64
	var areWorkers []bool
	change := func(name string, old int64, at store.Time, worker bool, value string) {
		oldNames, oldVersions = append(oldNames, name), append(oldVersions, old)
		if value != "" {
			names, ats, areWorkers, values = append(names, name), append(ats, int64(at)), append(areWorkers, worker), append(values, value)
		}
	}
	ix.numbers.text = encodeJSON(&ix.numbers)
	change("", ix.numbers.version, ix.numbers.ends, false, ix.numbers.text)
	if limits := encodeJSON(ix.limits); ix.limits != nil && limits != ix.storedLimits {
		change(limitsName, ix.documents[limitsName].version, 0, false, limits)
	}
	for _, name := range ix.dirtyNames {
		if d := ix.documents[name]; d.sender == nil {
			change(name, d.version, 0, false, "")
		} else {
			change(name, d.version, d.sender.Seen, d.sender.Claim != nil, encodeJSON(d.sender))
		}
	}
	ix.numbers.version++
	return []any{oldNames, oldVersions, ix.numbers.version, ix.numbers.Wakes, names, ats, areWorkers, values}
}
