package memstore

import (
	"cmp"
	"container/heap"
	"slices"
	"sync"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/machine"
)

// A shard is a part of the tasks, with its own lock. It implements [machine.Index].
type shard struct {
	mu    sync.Mutex
	tasks map[string]*task

	// Each task is in the heap for its State. Dead and paused tasks are in no heap.
	pendingQueues map[queueKey]*queue // without parked tasks
	groups        map[machine.GroupKey]*group
	runningQueue  queue // of Running tasks
	pastQueue     queue // of Past entries

	lastArrival uint64 // of the latest task
	numbers     machine.Numbers
	senders     map[string]*machine.Sender
	limits      map[string]*machine.Limit
	groupStates groupHeap
}

// A group has the Pending tasks of a group of a handler.
type group struct {
	ready  map[*task]bool
	parked map[queueKey]*queue
}

var _ machine.Index = (*shard)(nil)

// A task is an entry with its positions in the shard.
type task struct {
	machine.Task
	queue    *queue           // nil if the task is in no queue
	groupKey machine.GroupKey // of the group that has the task; zero if none has
	index    int              // in the queue
	// arrival orders tasks with the same At: the task with the smaller number is first.
	arrival uint64
}

// A queueKey says in which queue a pending task is.
type queueKey struct {
	handler, schedule string
	suspect           bool
}

func newShard() *shard {
	return &shard{
		tasks: make(map[string]*task), pendingQueues: make(map[queueKey]*queue),
		senders: make(map[string]*machine.Sender), limits: make(map[string]*machine.Limit),
		groups: make(map[machine.GroupKey]*group), groupStates: groupHeap{byKey: make(map[machine.GroupKey]*groupState)},
	}
}

// withLock calls f under the lock, and reports whether waiting workers must be woken.
func (sh *shard) withLock(now func() (machine.Moment, error), f func(sh *shard, at machine.Moment)) (wake bool, err error) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	wakesBefore := sh.numbers.Wakes
	at, err := now()
	if err == nil {
		f(sh, at)
	}
	return sh.numbers.Wakes != wakesBefore, err
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

// Changed moves a task to the heap of its new State.
func (sh *shard) Changed(t *machine.Task) {
	x := sh.tasks[t.ID]
	if q := x.queue; q != nil {
		q.remove(x)
		if len(q.tasks) == 0 && q.home != nil {
			delete(q.home, q.key)
		}
	}
	if g := sh.groups[x.groupKey]; g != nil {
		delete(g.ready, x)
		if len(g.ready) == 0 && len(g.parked) == 0 {
			delete(sh.groups, x.groupKey)
		}
		x.groupKey = machine.GroupKey{}
	}
	switch t.State {
	case store.Pending:
		if t.Waits() {
			break
		}
		sh.lastArrival++
		x.arrival = sh.lastArrival
		home := sh.pendingQueues
		if x.Group != "" {
			x.groupKey = machine.GroupKey{Handler: x.Handler, Name: x.Group}
			g := sh.groups[x.groupKey]
			if g == nil {
				g = &group{make(map[*task]bool), make(map[queueKey]*queue)}
				sh.groups[x.groupKey] = g
			}
			if x.Parked {
				home = g.parked
			} else {
				g.ready[x] = true
			}
		}
		queueIn(home, queueKey{x.Handler, x.Schedule, x.Suspect}).push(x)
	case store.Running:
		sh.runningQueue.push(x)
	case store.Past:
		sh.pastQueue.push(x)
	case 0:
		delete(sh.tasks, t.ID)
	}
}

// Due offers due tasks to the picker. It removes each task that the picker takes from its
// queue to find the next one, and finally puts all of them back.
func (sh *shard) Due(c *store.Claim, picker *machine.Picker, now store.Time, n int) (due []*machine.Task, next store.Time) {
	var heads heapOf[*queue]
	next = machine.Never
	add := func(q *queue) {
		switch {
		case q == nil || len(q.tasks) == 0:
		case q.tasks[0].At > now:
			next = min(next, q.tasks[0].At)
		default:
			heap.Push(&heads, q)
		}
	}
	schedules := append([]string{""}, c.Schedules...)
	for _, h := range c.Handlers {
		for _, s := range schedules {
			add(sh.pendingQueues[queueKey{h, s, false}])
			add(sh.pendingQueues[queueKey{h, s, true}])
		}
	}
	var removed []*task
	suspectRefused := false
	for len(due) < n && len(heads) > 0 {
		q := heads[0]
		oldest := q.tasks[0]
		switch {
		case q.key.suspect && suspectRefused, !picker.Has(q.key.handler):
			heap.Pop(&heads)
			continue
		case picker.Skips(&oldest.Task):
		case !picker.Take(&oldest.Task):
			suspectRefused = true
			heap.Pop(&heads)
			continue
		default:
			due = append(due, &oldest.Task)
		}
		q.remove(oldest)
		oldest.queue = q
		removed = append(removed, oldest)
		if len(q.tasks) > 0 && q.tasks[0].At <= now {
			heap.Fix(&heads, 0)
			continue
		}
		heap.Pop(&heads)
		add(q)
	}
	for _, x := range removed {
		x.queue.push(x)
	}
	return due, next
}

func (sh *shard) Running(until store.Time) (tasks []*machine.Task) {
	sh.runningQueue.visitUntil(0, until, func(x *task) { tasks = append(tasks, &x.Task) })
	return tasks
}

func (sh *shard) Over(now store.Time, n int) (tasks []*machine.Task) {
	sh.pastQueue.visitUntil(0, now, func(x *task) { tasks = append(tasks, &x.Task) })
	return tasks[:min(n, len(tasks))]
}

func (sh *shard) Expired(now store.Time) (n int64) {
	sh.pastQueue.visitUntil(0, now, func(*task) { n++ })
	return n
}

func (sh *shard) End() store.Time    { return sh.runningQueue.firstAt() }
func (sh *shard) Expiry() store.Time { return sh.pastQueue.firstAt() }

func (sh *shard) Limits() map[string]*machine.Limit { return sh.limits }

func (sh *shard) Overdue(now store.Time) (kinds []machine.Kind) {
	add := func(queues map[queueKey]*queue) {
		for k, q := range queues {
			x := machine.Kind{Handler: k.handler, Schedule: k.schedule, First: q.tasks[0].At}
			q.visitUntil(0, now, func(*task) { x.Tasks++ })
			kinds = append(kinds, x)
		}
	}
	add(sh.pendingQueues)
	for _, g := range sh.groups {
		add(g.parked)
	}
	return kinds
}

// Members returns the tasks of some groups that are not parked, and the first n parked ones
// of each kind.
func (sh *shard) Members(keys []machine.GroupKey, n int) (tasks []*machine.Task) {
	for _, k := range keys {
		g := sh.groups[k]
		if g == nil {
			continue
		}
		from := len(tasks)
		for x := range g.ready {
			tasks = append(tasks, &x.Task)
		}
		for _, q := range g.parked {
			for _, x := range first(&q.tasks, n, func(*task) bool { return true }) {
				tasks = append(tasks, &x.Task)
			}
		}
		slices.SortFunc(tasks[from:], func(a, b *machine.Task) int {
			x, y := sh.tasks[a.ID], sh.tasks[b.ID]
			return cmp.Or(cmp.Compare(x.At, y.At), cmp.Compare(x.arrival, y.arrival))
		})
	}
	return tasks
}

func (sh *shard) Group(k machine.GroupKey) *machine.Group {
	if x := sh.groupStates.byKey[k]; x != nil {
		return x.Group
	}
	return nil
}

func (sh *shard) PutGroup(k machine.GroupKey, g *machine.Group) { sh.groupStates.put(k, g) }

func (sh *shard) Groups(until store.Time, n int) (groups []*machine.Group) {
	for _, x := range first(&sh.groupStates.states, n, func(x *groupState) bool { return x.Until <= until }) {
		groups = append(groups, x.Group)
	}
	return groups
}

func (sh *shard) Sender(name string) *machine.Sender { return sh.senders[name] }

func (sh *shard) Remember(name string, x *machine.Sender) {
	if x == nil {
		delete(sh.senders, name)
		return
	}
	sh.senders[name] = x
}

// Gone returns senders whose last command was before a time. It checks only n senders,
// because there may be many.
func (sh *shard) Gone(before store.Time, n int) (names []string) {
	for name, x := range sh.senders { // in random order
		if x.Seen < before {
			names = append(names, name)
		}
		if n--; n == 0 {
			break
		}
	}
	return names
}

// Workers returns the workers. All are in this process, so they live.
func (sh *shard) Workers(store.Time) (workers []*machine.Sender) {
	for _, x := range sh.senders {
		if x.Claim != nil {
			workers = append(workers, x)
		}
	}
	return workers
}
