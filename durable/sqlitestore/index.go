package sqlitestore

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/machine"
)

// An index implements machine.Index for one transaction. It caches rows, and writes
// changed rows before a query that depends on them.
type index struct {
	*session
	now            machine.Moment
	tasks          map[string]*cachedTask
	dirtyTasks     []*cachedTask // changed, but not written
	senders        map[string]*cachedSender
	changedSenders []string   // may contain a name twice
	damagedUntil   store.Time // all leases up to this time belong to damaged rows
	dataVersion    int64      // SQLite's data_version; a commit of another connection changes it
	counters       machine.Numbers
	storedCounters machine.Numbers // the counters in the table
	// limits is nil until the limits are read. storedLimits are the limits in the table.
	limits       map[string]*machine.Limit
	storedLimits map[string]machine.Limit
	headTable    *headTable // nil until the first claim
	groups       map[machine.GroupKey]*cachedGroup
}

// A cachedTask is a task, with the stored values of its row.
type cachedTask struct {
	machine.Task
	storedTask store.Task // the task in the table
	storedKind pendingKind
	storedAt   store.Time
	// storedPending says that the task in the table is Pending, of storedKind, at storedAt, and
	// not paused.
	storedPending bool
	hasRow        bool  // whether the table has the task
	rowID         int64 // of the row, if it is known, to find it faster; otherwise 0
	dirty         bool  // changed, but not written
	err           error // not nil if the row is damaged
}

// A cachedSender is a sender's record. The pointer is nil if there is no record.
type cachedSender struct {
	*machine.Sender
	dirty bool  // changed, but not written
	err   error // not nil if the row is damaged
}

// newIndex returns an index without cached tasks. It reads only the counters,
// machine.Numbers.
func newIndex(x *session) *index {
	ix := &index{session: x, tasks: make(map[string]*cachedTask), senders: make(map[string]*cachedSender), groups: make(map[machine.GroupKey]*cachedGroup)}
	ix.readCounters()
	return ix
}

// Limits of what nextIndex keeps: the senders, the running tasks, and the bytes in the
// record of such a task.
const (
	maxSenders  = 2000
	maxRunning  = 1000
	smallRecord = 1 << 10
)

// nextIndex returns the index for the connection's next transaction, after ix was committed.
// It keeps the cached counters, senders and running tasks, unless another connection has
// committed meanwhile.
func (ix *index) nextIndex() *index {
	nextIx := &index{session: ix.session, tasks: make(map[string]*cachedTask), senders: ix.senders, counters: ix.counters, storedCounters: ix.counters,
		groups: make(map[machine.GroupKey]*cachedGroup)}
	nextIx.queryRow(getVersion, nil, &nextIx.dataVersion)
	if ix.senders == nil || nextIx.dataVersion != ix.dataVersion || len(ix.senders) > maxSenders {
		nextIx.senders = make(map[string]*cachedSender)
		nextIx.readCounters()
		return nextIx
	}
	nextIx.limits, nextIx.storedLimits, nextIx.headTable = ix.limits, ix.storedLimits, ix.headTable
	for id, x := range ix.tasks {
		if x.State == store.Running && len(x.Record) <= smallRecord && len(nextIx.tasks) < maxRunning {
			nextIx.tasks[id] = x
		}
	}
	return nextIx
}

// readCounters reads the counters. It fails if another process has upgraded the tables.
func (ix *index) readCounters() {
	var r smallRow
	ix.queryRows(getNumbers, nil, func(rows *sql.Rows) { r = scanSmallRow(rows) })
	must(checkSchemaVersion(r.first))
	ix.counters = machine.Numbers{}
	must(r.decode(&ix.counters))
	ix.storedCounters = ix.counters
}

func (ix *index) Numbers() *machine.Numbers { return &ix.counters }

func (ix *index) Now() machine.Moment { return ix.now }

// loadRows reads the tasks and senders that are not cached yet.
func (ix *index) loadRows(ids, senders []string) {
	var args []any
	for _, id := range ids {
		if ix.tasks[id] == nil {
			ix.tasks[id] = new(cachedTask)
			args = append(args, id)
		}
	}
	ix.queryInBatches(findTasks, 1, args, func(rows *sql.Rows) {
		x := scanTask(rows)
		ix.tasks[x.ID] = x
	})
	args = args[:0]
	for _, name := range senders {
		if ix.senders[name] == nil {
			ix.senders[name] = new(cachedSender)
			args = append(args, name)
		}
	}
	ix.queryInBatches(findSenders, 1, args, func(rows *sql.Rows) {
		r, x := scanSmallRow(rows), &cachedSender{Sender: new(machine.Sender)}
		if x.err = r.decode(x.Sender); ix.senders[r.name] != nil {
			ix.senders[r.name] = x
		}
	})
}

// CheckRows returns an error if a row that a command needs is damaged.
func (ix *index) CheckRows(sender string, ids []string) error {
	if err := ix.senders[sender].err; err != nil {
		return fmt.Errorf("%w: %w", err, store.ErrNotDone)
	}
	for _, id := range ids {
		if err := ix.tasks[id].err; err != nil {
			return fmt.Errorf("%w: %w", err, store.ErrNotDone)
		}
	}
	return nil
}

// scanTask reads a row, whose first columns go to before.
func scanTask(rows *sql.Rows, before ...any) *cachedTask {
	x := &cachedTask{hasRow: true}
	if x.err = scanRow(rows, &x.Task, before...); !errors.Is(x.err, ErrDamaged) {
		must(x.err)
	}
	x.noteStored()
	return x
}

// noteStored notes that the table has the present task.
func (x *cachedTask) noteStored() {
	x.storedTask, x.storedKind, x.storedAt, x.storedPending = x.Task.Task, kindOf(&x.Task), x.At, x.State == store.Pending && !x.Waits() && !x.Parked
}

// cacheTask returns the cached task for a row that was read.
func (ix *index) cacheTask(x *cachedTask) *machine.Task {
	if ix.tasks[x.ID] == nil {
		ix.tasks[x.ID] = x
	}
	return &ix.tasks[x.ID].Task
}

func (ix *index) findTask(id string) *cachedTask {
	if ix.tasks[id] == nil {
		ix.loadRows([]string{id}, nil)
	}
	return ix.tasks[id]
}

// Find returns the task with an id. It returns nil if the row is missing or damaged.
func (ix *index) Find(id string) *machine.Task {
	if x := ix.findTask(id); x.State != 0 && x.err == nil {
		return &x.Task
	}
	return nil
}

// Add returns a new task. It may replace a task that has ended in this transaction, or a
// damaged row.
func (ix *index) Add(id string) *machine.Task {
	x := ix.findTask(id)
	x.Task, x.err = machine.Task{}, nil
	return &x.Task
}

// Changed notes that a task has changed, so that flushTasks writes it.
func (ix *index) Changed(t *machine.Task) {
	if x := ix.tasks[t.ID]; !x.dirty {
		x.dirty = true
		ix.dirtyTasks = append(ix.dirtyTasks, x)
	}
}

// flushTasks writes the changed tasks to the table.
func (ix *index) flushTasks() {
	for _, x := range ix.dirtyTasks {
		x.dirty = false
		t := &x.Task
		switch {
		case t.State == 0, !x.hasRow, t.Handler != x.storedTask.Handler, t.Schedule != x.storedTask.Schedule, t.Group != x.storedTask.Group:
			switch {
			case x.rowID != 0:
				ix.exec(deleteRow, x.rowID)
			case x.hasRow:
				ix.exec(deleteTask, x.storedTask.ID)
			}
			if t.State != 0 {
				ix.exec(insertTask, columnValues(t)...)
			}
			x.rowID = 0
		default:
			m := t.EncodeMore(t.Suspect)
			values := []any{columnState(t), int64(t.At), int64(t.Due), int64(t.Attempts), t.Token, int64(t.Lease), nullableText(m), rowChecksum(t, m), nullableNumber(t.Worker), nullableNumber(t.Version)}
			switch isSame := isSameSlice(t.Record, x.storedTask.Record); {
			case isSame && x.rowID != 0:
				ix.exec(moveRow, append(values, x.rowID)...)
			case isSame:
				ix.exec(moveTask, append(values, t.ID)...)
			default:
				ix.exec(writeTask, append(values, t.Record, t.ID)...)
			}
		}
		ix.headTable.noteHead(x)
		x.noteStored()
		x.hasRow = t.State != 0
	}
	ix.dirtyTasks = ix.dirtyTasks[:0]
}

// isSameSlice reports whether two records are the same slice. That is enough, because
// package machine never changes the bytes of a record.
func isSameSlice(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// writeChanges writes all changes to the tables.
func (ix *index) writeChanges() {
	ix.flushTasks()
	ix.flushGroups()
	var dropped, changed []any
	for _, name := range ix.changedSenders {
		s := ix.senders[name]
		dirty := s.dirty
		s.dirty = false
		switch {
		case !dirty:
		case s.Sender == nil:
			dropped = append(dropped, name)
		default:
			r := smallRow{name: name, text: encodeJSON(s.Sender), first: int64(s.Seen)}
			if s.Claim != nil {
				r.second = 1
			}
			changed = append(changed, r.name, r.text, r.first, r.second, r.checksum())
		}
	}
	ix.queryInBatches(dropSenders, 1, dropped, nil)
	ix.queryInBatches(putSenders, 5, changed, nil)
	for h, l := range ix.limits {
		if ix.storedLimits[h] != *l {
			r := smallRow{name: h, text: encodeJSON(l)}
			ix.exec(putLimit, r.name, r.text, r.checksum())
			ix.storedLimits[h] = *l
		}
	}
	for h := range ix.storedLimits {
		if ix.limits[h] == nil {
			ix.exec(dropLimit, h)
			delete(ix.storedLimits, h)
		}
	}
	if ix.counters != ix.storedCounters {
		r := smallRow{text: encodeJSON(&ix.counters), first: schemaVersion, second: ix.counters.Wakes}
		ix.exec(putNumbers, r.second, r.text, r.checksum())
	}
}

func encodeJSON(x any) string {
	b, err := json.Marshal(x)
	must(err)
	return string(b)
}

// selectTasks returns the undamaged tasks that a query selects, and the number of all
// rows. It fails if an index contains a wrong task.
func (ix *index) selectTasks(state store.State, query string, args ...any) (found []*machine.Task, rowCount int) {
	seenIDs := make(map[string]bool)
	ix.queryRows(query, args, func(rows *sql.Rows) {
		rowCount++
		x := scanTask(rows)
		if x.err != nil {
			return
		}
		if x.State != state || seenIDs[x.ID] {
			must(fmt.Errorf("%w: an index contains the task %q, which is not %v", ErrDamaged, store.Shorten(x.ID), state))
		}
		seenIDs[x.ID] = true
		found = append(found, ix.cacheTask(x))
	})
	return found, rowCount
}

// Running returns the tasks whose lease ends at or before until.
func (ix *index) Running(until store.Time) []*machine.Task {
	ix.flushTasks()
	if until != machine.Never {
		ix.damagedUntil = until
	}
	found, _ := ix.selectTasks(store.Running, runTasks, int64(until))
	return found
}

// Over returns up to n Past entries that have expired.
func (ix *index) Over(now store.Time, n int) []*machine.Task {
	ix.flushTasks()
	found, _ := ix.selectTasks(store.Past, overTasks, int64(now), n)
	return found
}

// Expiry returns when the first Past entry expires, or machine.Never.
func (ix *index) Expiry() store.Time {
	ix.flushTasks()
	return ix.queryTime(firstExpiry)
}

// Expired counts the Past entries that have expired.
func (ix *index) Expired(now store.Time) (n int64) {
	ix.flushTasks()
	ix.queryRow(countOver, []any{int64(now)}, &n)
	return n
}

// queryTime returns the time that a query selects, or machine.Never.
func (ix *index) queryTime(query string, args ...any) store.Time {
	var at sql.NullInt64
	if ix.queryRow(query, args, &at); !at.Valid {
		return machine.Never
	}
	return store.Time(at.Int64)
}

// End returns when the first lease ends, or machine.Never.
func (ix *index) End() store.Time {
	ix.flushTasks()
	return ix.queryTime(firstEnd, int64(ix.damagedUntil))
}

func (ix *index) Limits() map[string]*machine.Limit {
	if ix.limits == nil {
		ix.limits, ix.storedLimits = make(map[string]*machine.Limit), make(map[string]machine.Limit)
		ix.queryRows(getLimits, nil, func(rows *sql.Rows) {
			r, l := scanSmallRow(rows), new(machine.Limit)
			if r.decode(l) != nil {
				return // Check and Verify find it, and SetLimit replaces it
			}
			ix.limits[r.name], ix.storedLimits[r.name] = l, *l
		})
	}
	return ix.limits
}

const countOverdue = `WITH RECURSIVE handlers(name) AS (` + pendingHandlers + `), k(h, s) AS (` + kindsOfHandlers + `)
	SELECT h, s, (SELECT count(*) FROM %[1]s AND handler = h AND schedule = s AND at <= ?3), (SELECT min(at) FROM %[1]s AND handler = h AND schedule = s)
	FROM k WHERE s IS NOT NULL`

// Overdue counts the due tasks by handler and schedule.
func (ix *index) Overdue(now store.Time) (out []machine.Kind) {
	ix.flushTasks()
	for _, suspect := range []bool{false, true} {
		ix.queryRows(onIndex(suspect, countOverdue), []any{"", firstAfterPrefix(""), int64(now)}, func(rows *sql.Rows) {
			var k machine.Kind
			if must(rows.Scan(&k.Handler, &k.Schedule, &k.Tasks, &k.First)); k.Tasks > 0 {
				out = append(out, k)
			}
		})
	}
	ix.queryRows(countParked, []any{int64(now)}, func(rows *sql.Rows) {
		var x machine.Kind
		must(rows.Scan(&x.Handler, &x.Schedule, &x.Tasks, &x.First))
		out = append(out, x)
	})
	return out
}

func (ix *index) Sender(name string) *machine.Sender {
	ix.loadRows(nil, []string{name})
	return ix.senders[name].Sender
}

// Remember stores a sender's record, or deletes it if x is nil.
func (ix *index) Remember(name string, x *machine.Sender) {
	if x != nil && x.Claim != nil { // a worker of this process
		x.Process = thisProcess()
	}
	ix.senders[name] = &cachedSender{Sender: x, dirty: true}
	ix.changedSenders = append(ix.changedSenders, name)
}

// Gone returns senders whose last command was before a time. It checks at most 64 senders,
// whose names follow the name of a random cached sender.
func (ix *index) Gone(before store.Time, n int) (names []string) {
	var from string
	for name := range ix.senders {
		from = name
	}
	ix.queryRows(goneSenders, []any{from, int64(before), n}, func(rows *sql.Rows) {
		var name string
		must(rows.Scan(&name))
		if s := ix.senders[name]; s == nil || s.Sender != nil && s.Seen < before { // the table may have an older time
			names = append(names, name)
		}
	})
	return names
}

// Workers returns the workers. A worker lives if its process does, because an idle worker
// writes nothing.
func (ix *index) Workers(store.Time) (out []*machine.Sender) {
	lives := map[string]bool{} // by process: several workers may share one
	ix.queryRows(workers, nil, func(rows *sql.Rows) {
		r, x := scanSmallRow(rows), new(machine.Sender)
		if r.decode(x) != nil || x.Claim == nil { // Verify finds a damaged row
			return
		}
		if _, known := lives[x.Process]; !known {
			lives[x.Process] = processLives(x.Process)
		}
		x.Lost = !lives[x.Process]
		out = append(out, x)
	})
	return out
}
