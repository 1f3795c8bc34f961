package sqlitestore

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/machine"
)

// An index is the Index of one transaction. It keeps what the transaction has read and
// changed, and writes that before a query that could miss it.
type index struct {
	*session
	tasks   map[string]*task
	dirty   []*task
	senders map[string]*sender
	numbers machine.Numbers
	stored  machine.Numbers // as they are in the table
}

var _ machine.Index = (*index)(nil)

// A task is one that the transaction knows.
type task struct {
	machine.Task
	was    store.Task // as it is in the table
	stored bool       // it has a row
	dirty  bool
}

type sender struct {
	*machine.Sender
	dirty bool
}

// newIndex reads the numbers.
func newIndex(x *session) *index {
	ix := &index{session: x, tasks: make(map[string]*task), senders: make(map[string]*sender)}
	n := &ix.numbers
	ix.row(getNumbers, nil, &n.Pending, &n.Running, &n.Dead, &n.Claimed, &n.Done, &n.Retried, &n.Died, &n.Crashed, &n.Released,
		&n.Refused, &n.Cancelled, &n.Paused, &n.Fence, &n.Told, &n.Wakes, &n.Wall, &n.Steady, &n.Boot)
	ix.stored = *n
	return ix
}

func (ix *index) Numbers() *machine.Numbers { return &ix.numbers }

func (ix *index) find(id string) *task {
	x := ix.tasks[id]
	if x == nil {
		x = new(task)
		err := scan(ix.stmt(findTask).QueryRowContext(ix.ctx, id), &x.Task)
		if x.stored = err == nil; errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
		must(err)
		x.was = x.Task.Task
		ix.tasks[id] = x
	}
	return x
}

func (ix *index) Find(id string) *machine.Task {
	if x := ix.find(id); x.State != 0 {
		return &x.Task
	}
	return nil
}

// Add may be for an id whose task has ended in this transaction.
func (ix *index) Add(id string) *machine.Task {
	x := ix.find(id)
	x.Task = machine.Task{}
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
	for _, x := range ix.dirty {
		x.dirty = false
		t := &x.Task
		switch {
		case t.State == 0 && x.stored:
			ix.exec(deleteTask, t.ID)
		case t.State == 0:
		case !x.stored:
			ix.exec(insertTask, args(t)...)
		case t.Handler != x.was.Handler || t.Schedule != x.was.Schedule || !same(t.Record, x.was.Record):
			ix.exec(replaceTask, args(t)...)
		default:
			m := encodeMore(t)
			ix.exec(moveTask, int64(t.State), int64(t.At), int64(t.Due), int64(t.Attempts), int64(t.Crashes), int64(t.Runs),
				t.Token, int64(t.Lease), text(m), sum(t, m), t.ID)
		}
		x.was, x.stored = t.Task, t.State != 0
	}
	ix.dirty = ix.dirty[:0]
}

// same reports whether two records are one: the machine never changes the bytes of one.
func same(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// finish writes all that has changed.
func (ix *index) finish() {
	ix.flush()
	for name, s := range ix.senders {
		switch {
		case !s.dirty:
		case s.Sender == nil:
			ix.exec(dropSender, name)
		default:
			var claim []byte
			if s.Claim != nil {
				var err error
				claim, err = json.Marshal(s.Claim)
				must(err)
			}
			ix.exec(putSender, name, s.Number, int64(s.Seen), bytesOf(s.Outcomes), bytesOf(s.Receipts), bytesOf(s.Leases), s.After, s.Last, text(claim))
		}
	}
	if n := &ix.numbers; *n != ix.stored {
		ix.exec(putNumbers, n.Pending, n.Running, n.Dead, n.Claimed, n.Done, n.Retried, n.Died, n.Crashed, n.Released,
			n.Refused, n.Cancelled, n.Paused, n.Fence, int64(n.Told), n.Wakes, int64(n.Wall), int64(n.Steady), n.Boot)
	}
}

// bytesOf has the answers of a sender as bytes, and answers the other way round.
func bytesOf[T ~uint8](a []T) []byte {
	b := make([]byte, len(a))
	for i := range a {
		b[i] = byte(a[i])
	}
	return b
}

func answers[T ~uint8](b []byte) (a []T) {
	for _, x := range b {
		a = append(a, T(x))
	}
	return a
}

// Due merges the tasks of each kind that the claim knows. One whose row is damaged is left
// out, so that it does not keep others from running.
func (ix *index) Due(c *store.Claim, now store.Time, n int) (out []*machine.Task) {
	ix.flush()
	type place struct {
		at store.Time
		id string
	}
	var all []place
	kinds := 0
	for _, h := range c.Handlers {
		for _, s := range append([]string{""}, c.Schedules...) {
			before := len(all)
			ix.rows(dueTasks, []any{h, s, int64(now), n}, func(rows *sql.Rows) {
				var p place
				must(rows.Scan(&p.at, &p.id))
				all = append(all, p)
			})
			if len(all) > before {
				kinds++
			}
		}
	}
	if kinds > 1 {
		slices.SortFunc(all, func(a, b place) int { return cmp.Compare(a.at, b.at) })
	}
	for _, p := range all[:min(n, len(all))] {
		if t := ix.sound(p.id); t != nil {
			out = append(out, t)
		}
	}
	return out
}

// sound returns a task, or nil if its row is damaged.
func (ix *index) sound(id string) (t *machine.Task) {
	defer func() {
		if v := recover(); v != nil {
			if f, ok := v.(failure); !ok || !errors.Is(f.err, ErrDamaged) {
				panic(v)
			}
		}
	}()
	return ix.Find(id)
}

func (ix *index) Running(until store.Time) (out []*machine.Task) {
	ix.flush()
	for _, id := range ix.ids(runTasks, int64(until)) {
		if t := ix.sound(id); t != nil {
			out = append(out, t)
		}
	}
	return out
}

// ids returns the strings that a query selects.
func (ix *index) ids(query string, args ...any) (out []string) {
	ix.rows(query, args, func(rows *sql.Rows) {
		var id string
		must(rows.Scan(&id))
		out = append(out, id)
	})
	return out
}

func (ix *index) Next(now store.Time) (due, end store.Time) {
	ix.flush()
	first := func(query string, args ...any) store.Time {
		var at sql.NullInt64
		ix.row(query, args, &at)
		if !at.Valid {
			return machine.Never
		}
		return store.Time(at.Int64)
	}
	return first(nextDue, int64(now)), first(nextEnd)
}

func (ix *index) Overdue(now store.Time) (out []machine.Kind) {
	ix.flush()
	for k := (machine.Kind{}); ix.row(nextKind, []any{k.Handler, k.Schedule}, &k.Handler, &k.Schedule); {
		ix.row(countKind, []any{k.Handler, k.Schedule, int64(now)}, &k.Tasks, &k.First)
		if k.Tasks > 0 {
			out = append(out, k)
		}
	}
	return out
}

func (ix *index) Sender(name string) *machine.Sender {
	s := ix.senders[name]
	if s == nil {
		s = new(sender)
		var x machine.Sender
		var outcomes, receipts, leases, claim []byte
		if ix.row(findSender, []any{name}, &x.Number, &x.Seen, &outcomes, &receipts, &leases, &x.After, &x.Last, &claim) {
			x.Outcomes, x.Receipts, x.Leases = answers[store.Outcome](outcomes), answers[store.Receipt](receipts), answers[store.Lease](leases)
			if claim != nil {
				must(json.Unmarshal(claim, &x.Claim))
			}
			s.Sender = &x
		}
		ix.senders[name] = s
	}
	return s.Sender
}

func (ix *index) Remember(name string, x *machine.Sender) {
	ix.senders[name] = &sender{Sender: x, dirty: true}
}

// Gone looks at those whose names come after that of the newest sender.
func (ix *index) Gone(before store.Time, n int) []string {
	var from string
	for name := range ix.senders {
		from = name
	}
	return slices.DeleteFunc(ix.ids(goneSender, from, int64(before), n), func(name string) bool { return ix.senders[name] != nil })
}

func (ix *index) Workers() (out []*machine.Claim) {
	for _, text := range ix.ids(claims) {
		c := new(machine.Claim)
		must(json.Unmarshal([]byte(text), c))
		out = append(out, c)
	}
	return out
}
