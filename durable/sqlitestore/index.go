package sqlitestore

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

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
	sent    []string   // the names of senders that are remembered anew, some twice
	until   store.Time // leases up to here that are still there are of damaged rows
	version int64      // that SQLite gives to what other connections have committed
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
	err    error // it is damaged
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

// maxSenders is how many senders a connection remembers.
const maxSenders = 2000

// after returns the index of the next transaction of a connection that has committed ix. Senders
// send one command after the other: they need not be read again unless another
// connection has written.
func (ix *index) after() *index {
	next := &index{session: ix.session, tasks: make(map[string]*task), senders: ix.senders}
	next.row(getVersion, nil, &next.version)
	if ix.senders == nil || next.version != ix.version || len(ix.senders) > maxSenders {
		next.senders = make(map[string]*sender)
	}
	next.readNumbers()
	return next
}

func (ix *index) readNumbers() {
	n := &ix.numbers
	ix.row(getNumbers, nil, &n.Pending, &n.Running, &n.Dead, &n.Claimed, &n.Done, &n.Retried, &n.Died, &n.Crashed, &n.Released,
		&n.Refused, &n.Cancelled, &n.Paused, &n.Fence, &n.Told, &n.Wakes, &n.Wall, &n.Steady, &n.Boot)
	ix.stored = *n
}

func (ix *index) Numbers() *machine.Numbers { return &ix.numbers }

// load reads what the transaction does not know yet of tasks and senders, at once.
func (ix *index) load(ids, senders []string) {
	var args []any
	for _, id := range ids {
		if ix.tasks[id] == nil {
			ix.tasks[id] = new(task)
			args = append(args, id)
		}
	}
	ix.some(findSome, 1, args, func(rows *sql.Rows) {
		x := &task{stored: true}
		if x.err = scan(rows, &x.Task); !errors.Is(x.err, ErrDamaged) {
			must(x.err)
		}
		x.was = x.Task.Task
		ix.tasks[x.ID] = x
	})
	args = args[:0]
	for _, name := range senders {
		if ix.senders[name] == nil {
			ix.senders[name] = new(sender)
			args = append(args, name)
		}
	}
	ix.some(findSender, 1, args, func(rows *sql.Rows) {
		x := new(machine.Sender)
		var name string
		var outcomes, receipts, extensions, claim []byte
		must(rows.Scan(&name, &x.Number, &x.Seen, &outcomes, &receipts, &extensions, &x.After, &x.Last, &claim))
		x.Outcomes, x.Receipts, x.Extensions = answers[store.Outcome](outcomes), answers[store.Receipt](receipts), answers[store.Extension](extensions)
		if claim != nil {
			must(json.Unmarshal(claim, &x.Claim))
		}
		ix.senders[name].Sender = x
	})
}

func (ix *index) find(id string) *task {
	if ix.tasks[id] == nil {
		ix.load([]string{id}, nil)
	}
	return ix.tasks[id]
}

// Find takes a task whose row is damaged for none.
func (ix *index) Find(id string) *machine.Task {
	if x := ix.find(id); x.State != 0 && x.err == nil {
		return &x.Task
	}
	return nil
}

// Add may be for an id whose task has ended in this transaction, or whose row is damaged:
// that is replaced.
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
	if len(ix.dirty) == 0 {
		return
	}
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
			ix.exec(moveTask, int64(t.State), int64(t.At), int64(t.Due), int64(t.Attempts), int64(t.Crashes), int64(t.Runs),
				t.Token, int64(t.Lease), text(m), sum(t, m), t.ID)
		}
		x.was, x.stored = t.Task, t.State != 0
	}
	ix.some(deleteSome, 1, ended, nil)
	ix.some(insertSome, 14, inserted, nil)
	ix.dirty = ix.dirty[:0]
}

// same reports whether two records are one: the machine never changes the bytes of one.
func same(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// finish writes all that has changed.
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
			var claim []byte
			if s.Claim != nil {
				var err error
				claim, err = json.Marshal(s.Claim)
				must(err)
			}
			put = append(put, name, s.Number, int64(s.Seen), bytesOf(s.Outcomes), bytesOf(s.Receipts), bytesOf(s.Extensions), s.After, s.Last, text(claim))
		}
	}
	ix.some(dropSenders, 1, dropped, nil)
	ix.some(putSenders, 9, put, nil)
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

// Due leaves tasks whose rows are damaged out, and looks at more until n are sound.
func (ix *index) Due(c *store.Claim, now store.Time, n int) (due []*machine.Task, next store.Time) {
	ix.flush()
	for most := n; ; most *= 2 {
		var ids []string
		ids, next = ix.due(c, now, most)
		due = ix.sound(ids, store.Pending)
		if len(due) >= n || len(ids) < most {
			return due[:min(n, len(due))], next
		}
	}
}

// due merges the first n tasks of each kind that the claim knows.
func (ix *index) due(c *store.Claim, now store.Time, n int) (ids []string, next store.Time) {
	type place struct {
		at store.Time
		id string
	}
	var all []place
	next = machine.Never
	for _, h := range c.Handlers {
		for _, s := range append([]string{""}, c.Schedules...) {
			ix.rows(dueTasks, []any{h, s, n}, func(rows *sql.Rows) {
				var p place
				must(rows.Scan(&p.at, &p.id))
				if p.at > now {
					next = min(next, p.at)
					return
				}
				all = append(all, p)
			})
		}
	}
	slices.SortFunc(all, func(a, b place) int { return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.id, b.id)) })
	for _, p := range all[:min(n, len(all))] {
		ids = append(ids, p.id)
	}
	return ids, next
}

// sound returns tasks that an index has under a state, without those whose rows are damaged.
// It fails if the index is.
func (ix *index) sound(ids []string, state store.State) (out []*machine.Task) {
	ix.load(ids, nil)
	for _, id := range ids {
		switch x := ix.tasks[id]; {
		case x.err != nil:
		case x.State != state:
			must(fmt.Errorf("%w: an index has task %.80q, which is not %v", ErrDamaged, id, state))
		default:
			out = append(out, &x.Task)
		}
	}
	return out
}

func (ix *index) Running(until store.Time) []*machine.Task {
	ix.flush()
	ix.until = until
	return ix.sound(ix.ids(runTasks, int64(until)), store.Running)
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

func (ix *index) End() store.Time {
	ix.flush()
	var at sql.NullInt64
	if ix.row(firstEnd, []any{int64(ix.until)}, &at); !at.Valid {
		return machine.Never
	}
	return store.Time(at.Int64)
}

func (ix *index) Overdue(now store.Time) (out []machine.Kind) {
	for _, k := range ix.kinds() {
		ix.row(countKind, []any{k.Handler, k.Schedule, 0, int64(now) + 1}, &k.Tasks, &k.First)
		if k.Tasks > 0 {
			out = append(out, k)
		}
	}
	return out
}

// kinds returns what the tasks need that are Pending, and counts none.
func (ix *index) kinds() (out []machine.Kind) {
	ix.flush()
	for k := (machine.Kind{}); ix.row(nextKind, []any{k.Handler, k.Schedule}, &k.Handler, &k.Schedule); {
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

// Gone looks at those whose names come after that of the newest sender.
func (ix *index) Gone(before store.Time, n int) []string {
	var from string
	for name := range ix.senders {
		from = name
	}
	out := ix.ids(goneSender, from, int64(before), n)
	return slices.DeleteFunc(out, func(name string) bool { // what is in the table may be older
		s := ix.senders[name]
		return s != nil && (s.Sender == nil || s.Seen >= before)
	})
}

func (ix *index) Workers() (out []*machine.Claim) {
	for _, text := range ix.ids(claims) {
		c := new(machine.Claim)
		must(json.Unmarshal([]byte(text), c))
		out = append(out, c)
	}
	return out
}
