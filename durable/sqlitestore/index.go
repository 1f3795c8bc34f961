package sqlitestore

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/machine"
)

// An index is the Index of one transaction. It caches what the transaction has read and
// changed, and writes the changes before a query that depends on them.
type index struct {
	*session
	tasks   map[string]*task
	dirty   []*task
	senders map[string]*sender
	sent    []string   // senders with a new command; names may repeat
	until   store.Time // leases in the table up to this time belong to damaged rows
	version int64      // SQLite's data_version: changes when another connection commits
	numbers machine.Numbers
	stored  machine.Numbers // the numbers in the table
	// limits are the limits, or nil before they are read. was has the limits as stored.
	limits map[string]*machine.Limit
	was    map[string]machine.Limit
}

var _ machine.Index = (*index)(nil)

// A task is a task that the transaction has read.
type task struct {
	machine.Task
	was    store.Task // the task in the table
	stored bool       // the task has a row
	dirty  bool
	err    error // not nil if the row is damaged
}

type sender struct {
	*machine.Sender
	dirty bool
}

// newIndex reads the numbers.
func newIndex(x *session) *index {
	ix := &index{session: x, tasks: make(map[string]*task), senders: make(map[string]*sender)}
	ix.readNumbers()
	return ix
}

// The limits of a connection's cache: senders, running tasks, and bytes of their
// records.
const (
	maxSenders  = 2000
	maxRunning  = 1000
	smallRecord = 1 << 10
)

// after returns the index of the connection's next transaction, after ix was committed.
// It keeps the numbers, the senders and the running tasks, which will soon be reported.
// They need not be read again unless another connection has written.
func (ix *index) after() *index {
	next := &index{session: ix.session, tasks: make(map[string]*task), senders: ix.senders, numbers: ix.numbers, stored: ix.numbers}
	next.row(getVersion, nil, &next.version)
	if ix.senders == nil || next.version != ix.version || len(ix.senders) > maxSenders {
		next.senders = make(map[string]*sender)
		next.readNumbers()
		return next
	}
	next.limits, next.was = ix.limits, ix.was
	for id, x := range ix.tasks {
		if x.State == store.Running && len(x.Record) <= smallRecord && len(next.tasks) < maxRunning {
			next.tasks[id] = x
		}
	}
	return next
}

// readNumbers reads the numbers. It fails if another process has upgraded the tables.
func (ix *index) readNumbers() {
	var v int64
	var text []byte
	ix.row(getNumbers, nil, &v, &text)
	must(checkVersion(v))
	ix.numbers = machine.Numbers{}
	must(json.Unmarshal(text, &ix.numbers))
	ix.stored = ix.numbers
}

func (ix *index) Numbers() *machine.Numbers { return &ix.numbers }

// load reads tasks and senders that the transaction has not read yet, in one query
// each.
func (ix *index) load(ids, senders []string) {
	var args []any
	for _, id := range ids {
		if ix.tasks[id] == nil {
			ix.tasks[id] = new(task)
			args = append(args, id)
		}
	}
	ix.some(findSome, 1, args, func(rows *sql.Rows) {
		x := scanTask(rows)
		ix.tasks[x.ID] = x
	})
	args = args[:0]
	for _, name := range senders {
		if ix.senders[name] == nil {
			ix.senders[name] = new(sender)
			args = append(args, name)
		}
	}
	ix.some(findSenders, 1, args, func(rows *sql.Rows) {
		var name string
		var text []byte
		must(rows.Scan(&name, &text))
		x := new(machine.Sender)
		must(json.Unmarshal(text, x))
		ix.senders[name].Sender = x
	})
}

func scanTask(rows *sql.Rows) *task {
	x := &task{stored: true}
	if x.err = scan(rows, &x.Task); !errors.Is(x.err, ErrDamaged) {
		must(x.err)
	}
	x.was = x.Task.Task
	return x
}

func (ix *index) find(id string) *task {
	if ix.tasks[id] == nil {
		ix.load([]string{id}, nil)
	}
	return ix.tasks[id]
}

// Find treats a task with a damaged row as absent.
func (ix *index) Find(id string) *machine.Task {
	if x := ix.find(id); x.State != 0 && x.err == nil {
		return &x.Task
	}
	return nil
}

// Add may replace a task that has ended in this transaction, or one with a damaged row.
func (ix *index) Add(id string) *machine.Task {
	x := ix.find(id)
	x.Task, x.err = machine.Task{}, nil
	return &x.Task
}

func (ix *index) Changed(t *machine.Task) {
	if x := ix.tasks[t.ID]; !x.dirty {
		x.dirty = true
		ix.dirty = append(ix.dirty, x)
	}
}

// flush writes the tasks that have changed.
func (ix *index) flush() {
	var ended, inserted []any
	for _, x := range ix.dirty {
		x.dirty = false
		t := &x.Task
		switch {
		case t.State == 0, !x.stored, t.Handler != x.was.Handler, t.Schedule != x.was.Schedule, !same(t.Record, x.was.Record):
			if x.stored {
				ended = append(ended, x.was.ID)
			}
			if t.State != 0 {
				inserted = append(inserted, args(t)...)
			}
		default:
			m := encodeMore(t)
			ix.exec(moveTask, int64(t.State), int64(t.At), int64(t.Due), int64(t.Attempts),
				t.Token, int64(t.Lease), text(m), sum(t, m), t.ID)
		}
		x.was, x.stored = t.Task, t.State != 0
	}
	ix.some(deleteSome, 1, ended, nil)
	ix.some(insertSome, 12, inserted, nil)
	ix.dirty = ix.dirty[:0]
}

// same reports whether two records are the same slice. The machine never changes the
// bytes of a record.
func same(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// finish writes all changes.
func (ix *index) finish() {
	ix.flush()
	var dropped, put []any
	for _, name := range ix.sent {
		s := ix.senders[name]
		dirty := s.dirty
		s.dirty = false
		switch {
		case !dirty:
		case s.Sender == nil:
			dropped = append(dropped, name)
		default:
			put = append(put, name, int64(s.Seen), s.Claim != nil, encode(s.Sender))
		}
	}
	ix.some(dropSenders, 1, dropped, nil)
	ix.some(putSenders, 4, put, nil)
	for h, l := range ix.limits {
		if ix.was[h] != *l {
			ix.exec(putLimit, h, encode(l))
			ix.was[h] = *l
		}
	}
	for h := range ix.was {
		if ix.limits[h] == nil {
			ix.exec(dropLimit, h)
			delete(ix.was, h)
		}
	}
	if ix.numbers != ix.stored {
		ix.exec(putNumbers, ix.numbers.Wakes, encode(&ix.numbers))
	}
}

func encode(x any) string {
	b, err := json.Marshal(x)
	must(err)
	return string(b)
}

// Due skips tasks with damaged rows, and reads on until it has n sound ones.
func (ix *index) Due(c *store.Claim, now store.Time, n int) (due []*machine.Task, next store.Time) {
	ix.flush()
	next = machine.Never
	pick := machine.NewPicker(c)
	for _, h := range c.Handlers {
		if !pick.Has(h, false, false) {
			continue
		}
		for _, s := range append([]string{""}, c.Schedules...) {
			var some []*machine.Task
			for most := n; ; most *= 2 {
				var all int
				some, all = ix.sound(store.Pending, dueTasks, h, s, int64(now), most)
				some = pick.Within(some)
				if len(some) >= n || all < most {
					break
				}
			}
			if due = append(due, some...); len(some) < n {
				next = min(next, ix.first(nextDue, h, s, int64(now)))
			}
		}
	}
	slices.SortStableFunc(due, func(a, b *machine.Task) int { return cmp.Compare(a.At, b.At) })
	return pick.Pick(due, n), next
}

// sound runs a query that selects tasks by an index. It returns the tasks whose rows
// are undamaged, and the number of all selected rows. It fails if a selected task does
// not belong in the index.
func (ix *index) sound(state store.State, query string, args ...any) (found []*machine.Task, all int) {
	seen := make(map[string]bool)
	ix.rows(query, args, func(rows *sql.Rows) {
		all++
		x := scanTask(rows)
		if x.err != nil {
			return
		}
		if x.State != state || seen[x.ID] {
			must(fmt.Errorf("%w: an index contains the task %.80q, which is not %v", ErrDamaged, x.ID, state))
		}
		seen[x.ID] = true
		if ix.tasks[x.ID] == nil {
			ix.tasks[x.ID] = x
		}
		found = append(found, &ix.tasks[x.ID].Task)
	})
	return found, all
}

func (ix *index) Running(until store.Time) []*machine.Task {
	ix.flush()
	if until != machine.Never {
		ix.until = until
	}
	found, _ := ix.sound(store.Running, runTasks, int64(until))
	return found
}

func (ix *index) Over(now store.Time, n int) []*machine.Task {
	ix.flush()
	found, _ := ix.sound(store.Past, overTasks, int64(now), n)
	return found
}

// first returns the time that a query selects, or Never.
func (ix *index) first(query string, args ...any) store.Time {
	var at sql.NullInt64
	if ix.row(query, args, &at); !at.Valid {
		return machine.Never
	}
	return store.Time(at.Int64)
}

func (ix *index) End() store.Time {
	ix.flush()
	return ix.first(firstEnd, int64(ix.until))
}

func (ix *index) Limits() map[string]*machine.Limit {
	if ix.limits == nil {
		ix.limits, ix.was = make(map[string]*machine.Limit), make(map[string]machine.Limit)
		ix.rows(getLimits, nil, func(rows *sql.Rows) {
			var handler string
			var used []byte
			l := new(machine.Limit)
			must(rows.Scan(&handler, &used))
			must(json.Unmarshal(used, l))
			ix.limits[handler], ix.was[handler] = l, *l
		})
	}
	return ix.limits
}

func (ix *index) Overdue(now store.Time) (out []machine.Kind) {
	ix.flush()
	for _, k := range ix.kinds() {
		if ix.row(countKind, []any{k.Handler, k.Schedule, 0, int64(now) + 1}, &k.Tasks, &k.First); k.Tasks > 0 {
			out = append(out, k)
		}
	}
	return out
}

// kinds returns the handlers and schedules of the Pending tasks, without counts.
func (x *session) kinds() (out []machine.Kind) {
	for k := (machine.Kind{}); x.row(nextKind, []any{k.Handler, k.Schedule}, &k.Handler, &k.Schedule); {
		out = append(out, k)
	}
	return out
}

func (ix *index) Sender(name string) *machine.Sender {
	ix.load(nil, []string{name})
	return ix.senders[name].Sender
}

func (ix *index) Remember(name string, x *machine.Sender) {
	ix.senders[name] = &sender{Sender: x, dirty: true}
	ix.sent = append(ix.sent, name)
}

// Gone checks the senders whose names follow that of a cached sender.
func (ix *index) Gone(before store.Time, n int) (names []string) {
	var from string
	for name := range ix.senders {
		from = name
	}
	ix.rows(goneSenders, []any{from, int64(before), n}, func(rows *sql.Rows) {
		var name string
		must(rows.Scan(&name))
		if s := ix.senders[name]; s == nil || s.Sender != nil && s.Seen < before { // the table may have an older time
			names = append(names, name)
		}
	})
	return names
}

func (ix *index) Workers() (out []*machine.Claim) {
	ix.rows(workers, nil, func(rows *sql.Rows) {
		var text []byte
		var x machine.Sender
		must(rows.Scan(&text))
		must(json.Unmarshal(text, &x))
		out = append(out, x.Claim)
	})
	return out
}
