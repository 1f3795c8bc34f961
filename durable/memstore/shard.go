package memstore

import (
	"maps"
	"slices"
	"sync"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/machine"
	"github.com/tickless/tickless/timingwheel"
)

// A shard is a part of the tasks, under a lock of its own. It is the Index of its machine.
type shard struct {
	mu    sync.Mutex
	tasks map[string]*task

	// A task is in one of these, as its State says: a Pending one in waiting until it
	// is due, and in due from then on; a Running one in leases; a Dead one in none.
	waiting *timingwheel.Wheel[*task]
	due     map[kind]*queue
	leases  queue
	turned  store.Time // the time of waiting

	arrival uint64
	numbers machine.Numbers
	senders map[string]*machine.Sender
}

var _ machine.Index = (*shard)(nil)

// A task is an entry, and where it is.
type task struct {
	machine.Task
	place timingwheel.ID // of waiting
	queue *queue         // of due, or leases
	index int            // in the queue
	// arrival is the order in which tasks of one moment came.
	arrival uint64
}

// A kind is what a worker must know to run a task.
type kind struct{ handler, schedule string }

// The wheel counts microseconds, so that nothing is rounded.
const wheelSize = 256

func newShard(now store.Time) *shard {
	sh := &shard{
		tasks:   make(map[string]*task),
		due:     make(map[kind]*queue),
		senders: make(map[string]*machine.Sender),
	}
	sh.turnBack(now)
	return sh
}

// turnBack makes a new wheel: when the wall clock was set back, what had been due waits
// again. O(n).
func (sh *shard) turnBack(now store.Time) {
	w, err := timingwheel.New[*task](1, wheelSize, int64(now))
	if err != nil {
		panic(err) // the clock shows a time before 1970
	}
	sh.waiting, sh.turned = w, now
	clear(sh.due)
	for _, x := range slices.SortedFunc(maps.Values(sh.tasks), (*task).compare) {
		if x.State == store.Pending {
			x.queue = nil
			sh.wait(x)
		}
	}
}

// advance moves what is due from waiting to due. Every call begins with it.
func (sh *shard) advance(now store.Time) {
	if now < sh.turned {
		sh.turnBack(now)
		return
	}
	sh.turned = now
	var out [64]timingwheel.Expired[*task]
	for more := true; more; {
		var n int
		n, more = sh.waiting.Advance(int64(now), out[:])
		for _, x := range out[:n] {
			sh.enqueue(x.Value)
		}
	}
}

// wait puts a task where those are that are Pending.
func (sh *shard) wait(x *task) {
	var ok bool
	if x.place, ok = sh.waiting.Add(int64(x.At), x); !ok {
		sh.enqueue(x)
	}
}

func (sh *shard) enqueue(x *task) {
	k := kind{x.Handler, x.Schedule}
	q := sh.due[k]
	if q == nil {
		q = &queue{kind: k}
		sh.due[k] = q
	}
	q.push(x)
}

func (sh *shard) Numbers() *machine.Numbers { return &sh.numbers }

func (sh *shard) Find(id string) *machine.Task {
	if x := sh.tasks[id]; x != nil {
		return &x.Task
	}
	return nil
}

func (sh *shard) Add(id string) *machine.Task {
	x := new(task)
	sh.tasks[id] = x
	return &x.Task
}

// Changed takes a task from its place to that of its State.
func (sh *shard) Changed(t *machine.Task) {
	x := sh.tasks[t.ID]
	sh.waiting.Remove(x.place)
	if q := x.queue; q != nil {
		q.remove(x)
		if q.len() == 0 && q != &sh.leases {
			delete(sh.due, q.kind)
		}
	}
	x.place = timingwheel.ID{}
	switch t.State {
	case store.Pending:
		sh.arrival++
		x.arrival = sh.arrival
		sh.wait(x)
	case store.Running:
		sh.leases.push(x)
	case 0:
		delete(sh.tasks, t.ID)
	}
}

// Due takes tasks out of their queues, and puts them back.
func (sh *shard) Due(c *store.Claim, now store.Time, n int) (out []*machine.Task, next store.Time) {
	knows := machine.Claim{Handlers: c.Handlers, Schedules: c.Schedules}
	var queues []*queue
	for k, q := range sh.due {
		if knows.Knows(k.handler, k.schedule) {
			queues = append(queues, q)
		}
	}
	var taken []*task
	for len(taken) < n {
		var first *queue
		for _, q := range queues {
			if q.len() > 0 && (first == nil || q.first().before(first.first())) {
				first = q
			}
		}
		if first == nil {
			break
		}
		x := first.first()
		first.remove(x)
		x.queue = first
		taken, out = append(taken, x), append(out, &x.Task)
	}
	for _, x := range taken {
		x.queue.push(x)
	}
	if at, ok := sh.waiting.Next(); ok {
		return out, store.Time(at)
	}
	return out, machine.Never
}

func (sh *shard) Running(until store.Time) (out []*machine.Task) {
	if sh.leases.len() == 0 || sh.leases.first().At > until {
		return nil
	}
	for _, x := range sh.leases.tasks {
		if x.At <= until {
			out = append(out, &x.Task)
		}
	}
	return out
}

func (sh *shard) End() store.Time {
	if sh.leases.len() == 0 {
		return machine.Never
	}
	return sh.leases.first().At
}

func (sh *shard) Overdue(store.Time) (out []machine.Kind) {
	for k, q := range sh.due {
		out = append(out, machine.Kind{Handler: k.handler, Schedule: k.schedule, Tasks: int64(q.len()), First: q.first().At})
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

// Gone looks at some of the senders, of which there may be many.
func (sh *shard) Gone(before store.Time, n int) (out []string) {
	for name, x := range sh.senders { // which begins anywhere
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
