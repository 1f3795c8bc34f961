package memstore

import (
	"sync"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/machine"
)

// A shard holds a part of the tasks under its own lock. It is the Index of its machine.
type shard struct {
	mu    sync.Mutex
	tasks map[string]*task
	all   []*task // the same, in no order

	// A task is in the container of its State: a Pending one in the queue of its kind,
	// a Running one in leases, a Past one in past, a Dead one in none.
	pending map[kind]*queue
	leases  queue
	past    queue

	arrival uint64
	numbers machine.Numbers
	senders map[string]*machine.Sender
	limits  map[string]*machine.Limit
}

var _ machine.Index = (*shard)(nil)

// A task is an entry and its positions.
type task struct {
	machine.Task
	nth   int    // of all
	queue *queue // nil if the task is in no queue
	index int    // in the queue
	// arrival orders tasks with the same At.
	arrival uint64
}

// A kind is the handler and schedule that a worker needs for a task, and whether the
// task is a suspect.
type kind struct {
	handler, schedule string
	suspect           bool
}

func newShard() *shard {
	return &shard{
		tasks: make(map[string]*task), pending: make(map[kind]*queue),
		senders: make(map[string]*machine.Sender), limits: make(map[string]*machine.Limit),
	}
}

// call calls f under the lock, and reports whether waiting workers must be woken.
func (sh *shard) call(now func() machine.Moment, f func(sh *shard, at machine.Moment)) (wake bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	wakes := sh.numbers.Wakes
	f(sh, now())
	return sh.numbers.Wakes != wakes
}

func (sh *shard) Numbers() *machine.Numbers { return &sh.numbers }

func (sh *shard) Find(id string) *machine.Task {
	if x := sh.tasks[id]; x != nil {
		return &x.Task
	}
	return nil
}

func (sh *shard) Add(id string) *machine.Task {
	x := &task{nth: len(sh.all)}
	sh.tasks[id], sh.all = x, append(sh.all, x)
	return &x.Task
}

// Changed moves a task to the container of its new State.
func (sh *shard) Changed(t *machine.Task) {
	x := sh.tasks[t.ID]
	if q := x.queue; q != nil {
		q.remove(x)
		if q.Len() == 0 && q != &sh.leases && q != &sh.past {
			delete(sh.pending, q.kind)
		}
	}
	switch t.State {
	case store.Pending:
		sh.arrival++
		x.arrival = sh.arrival
		k := kind{x.Handler, x.Schedule, x.Suspect()}
		q := sh.pending[k]
		if q == nil {
			q = &queue{kind: k}
			sh.pending[k] = q
		}
		q.push(x)
	case store.Running:
		sh.leases.push(x)
	case store.Past:
		sh.past.push(x)
	case 0:
		delete(sh.tasks, t.ID)
		n := len(sh.all) - 1
		sh.all[x.nth], sh.all[n].nth = sh.all[n], x.nth
		sh.all[n] = nil
		sh.all = sh.all[:n]
	}
}

// Due returns up to n due tasks that the claim may get, without changing the queues.
func (sh *shard) Due(c *store.Claim, now store.Time, n int) (due []*machine.Task, next store.Time) {
	knows := machine.Claim{Handlers: c.Handlers, Schedules: c.Schedules}
	var queues []*queue
	for k, q := range sh.pending {
		if knows.Knows(k.handler, k.schedule) {
			queues = append(queues, q)
		}
	}
	pick := machine.NewPicker(c)
	var taken []*task
	for _, first := range []bool{true, false} {
		for next = machine.Never; len(taken) < n; {
			var head *task
			for _, q := range queues {
				if q.Len() > 0 && pick.Has(q.kind.handler, q.kind.suspect, first) && (head == nil || q.tasks[0].before(head)) {
					head = q.tasks[0]
				}
			}
			if head == nil {
				break
			}
			if head.At > now {
				next = head.At
				break
			}
			q := head.queue
			q.remove(head)
			head.queue = q
			pick.Take(q.kind.handler, q.kind.suspect)
			taken, due = append(taken, head), append(due, &head.Task)
		}
	}
	for _, x := range taken {
		x.queue.push(x)
	}
	return due, next
}

func (sh *shard) Running(until store.Time) (out []*machine.Task) {
	sh.leases.until(0, until, func(x *task) { out = append(out, &x.Task) })
	return out
}

func (sh *shard) Over(now store.Time, n int) (out []*machine.Task) {
	sh.past.until(0, now, func(x *task) { out = append(out, &x.Task) })
	return out[:min(n, len(out))]
}

func (sh *shard) End() store.Time {
	if sh.leases.Len() == 0 {
		return machine.Never
	}
	return sh.leases.tasks[0].At
}

func (sh *shard) Limits() map[string]*machine.Limit { return sh.limits }

func (sh *shard) Overdue(now store.Time) (out []machine.Kind) {
	for k, q := range sh.pending {
		x := machine.Kind{Handler: k.handler, Schedule: k.schedule, First: q.tasks[0].At}
		q.until(0, now, func(*task) { x.Tasks++ })
		out = append(out, x)
	}
	return out
}

func (sh *shard) Sender(name string) *machine.Sender { return sh.senders[name] }

func (sh *shard) Remember(name string, x *machine.Sender) {
	if x == nil {
		delete(sh.senders, name)
		return
	}
	sh.senders[name] = x
}

// Gone returns senders that have been silent for long. It checks only some of them,
// because there may be many.
func (sh *shard) Gone(before store.Time, n int) (out []string) {
	for name, x := range sh.senders { // in random order
		if x.Seen < before {
			out = append(out, name)
		}
		if n--; n == 0 {
			break
		}
	}
	return out
}

func (sh *shard) Workers() (out []*machine.Claim) {
	for _, x := range sh.senders {
		if x.Claim != nil {
			out = append(out, x.Claim)
		}
	}
	return out
}
