package memstore

import (
	"math"
	"slices"
	"sync"

	"github.com/emirpasic/gods/v2/trees/binaryheap"
	"github.com/emirpasic/gods/v2/trees/redblacktree"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/machine"
)

// A shard is a part of the tasks, with its own lock. It implements [machine.Index].
type shard struct {
	mu    sync.Mutex
	tasks map[string]*task

	// Each task is in the queue for its State. Dead and paused tasks are in no queue.
	pendingQueues map[queueKey]*queue // without parked tasks; none is empty
	groups        map[machine.GroupKey]*group
	runningQueue  *queue // of Running tasks
	pastQueue     *queue // of Past entries

	lastArrival  uint64 // of the latest position
	numbers      machine.Numbers
	senders      map[string]*machine.Sender
	limits       map[string]*machine.Limit
	groupStates  map[machine.GroupKey]groupState
	groupsByTime *redblacktree.Tree[position, *machine.Group] // by their Until
}

// A groupState is the state of a group, and its position in groupsByTime.
type groupState struct {
	*machine.Group
	position
}

// A group has the Pending tasks of a group of a handler.
type group struct {
	ready  map[*task]bool
	parked map[queueKey]*queue
}

var _ machine.Index = (*shard)(nil)

// A task is an entry with its place in the shard.
type task struct {
	machine.Task
	queue    *queue              // nil if the task is in no queue
	home     map[queueKey]*queue // has the queue while it is not empty; nil if the queue is always there
	position position            // in the queue
	groupKey machine.GroupKey    // of the group that has the task; zero if none has
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
		runningQueue: newQueue(queueKey{}), pastQueue: newQueue(queueKey{}), groups: make(map[machine.GroupKey]*group),
		groupStates: make(map[machine.GroupKey]groupState), groupsByTime: redblacktree.NewWith[position, *machine.Group](comparePositions),
	}
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

// Changed moves a task to the queue of its new State.
func (sh *shard) Changed(t *machine.Task) {
	x := sh.tasks[t.ID]
	if q := x.queue; q != nil {
		q.Remove(x.position)
		if q.Empty() {
			delete(x.home, q.key)
		}
	}
	if g := sh.groups[x.groupKey]; g != nil {
		delete(g.ready, x)
		if len(g.ready) == 0 && len(g.parked) == 0 {
			delete(sh.groups, x.groupKey)
		}
	}
	x.queue, x.home, x.groupKey = nil, nil, machine.GroupKey{}
	switch t.State {
	case store.Pending:
		if t.Waits() {
			break
		}
		x.home = sh.pendingQueues
		if x.Group != "" {
			x.groupKey = machine.GroupKey{Handler: x.Handler, Name: x.Group}
			g := sh.groups[x.groupKey]
			if g == nil {
				g = &group{make(map[*task]bool), make(map[queueKey]*queue)}
				sh.groups[x.groupKey] = g
			}
			if x.Parked {
				x.home = g.parked
			} else {
				g.ready[x] = true
			}
		}
		x.queue = queueIn(x.home, queueKey{x.Handler, x.Schedule, x.Suspect})
	case store.Running:
		x.queue = sh.runningQueue
	case store.Past:
		x.queue = sh.pastQueue
	case 0:
		delete(sh.tasks, t.ID)
	}
	if x.queue != nil {
		x.position = sh.newPosition(x.At)
		x.queue.Put(x.position, x)
	}
}

// newPosition returns the position after all others with the same At.
func (sh *shard) newPosition(at store.Time) position {
	sh.lastArrival++
	return position{at, sh.lastArrival}
}

// Due offers due tasks to the picker, the oldest of all queues first.
func (sh *shard) Due(c *store.Claim, picker *machine.Picker, now store.Time, n int) (due []*machine.Task, next store.Time) {
	type head = *redblacktree.Iterator[position, *task]
	heads := binaryheap.NewWith(func(a, b head) int { return comparePositions(a.Key(), b.Key()) })
	next = machine.Never
	// add adds the next task of a queue, if it is due.
	add := func(h head) {
		switch {
		case !h.Next():
		case h.Key().at > now:
			next = min(next, h.Key().at)
		default:
			heads.Push(h)
		}
	}
	schedules := append([]string{""}, c.Schedules...)
	for _, h := range c.Handlers {
		for _, s := range schedules {
			for _, isSuspect := range []bool{false, true} {
				if q := sh.pendingQueues[queueKey{h, s, isSuspect}]; q != nil {
					add(q.Iterator())
				}
			}
		}
	}
	suspectRefused := false
	for len(due) < n {
		h, ok := heads.Pop()
		if !ok {
			break
		}
		oldest := &h.Value().Task
		switch {
		case oldest.Suspect && suspectRefused, !picker.Has(oldest.Handler):
			continue // without the rest of the queue
		case picker.Skips(oldest):
		case !picker.Take(oldest):
			suspectRefused = true
			continue
		default:
			due = append(due, oldest)
		}
		add(h)
	}
	return due, next
}

func (sh *shard) Running(until store.Time) []*machine.Task {
	return sh.runningQueue.first(math.MaxInt, until)
}

func (sh *shard) Over(now store.Time, n int) []*machine.Task { return sh.pastQueue.first(n, now) }

func (sh *shard) Expired(now store.Time) int64 {
	return int64(len(sh.pastQueue.first(math.MaxInt, now)))
}

func (sh *shard) End() store.Time    { return sh.runningQueue.firstAt() }
func (sh *shard) Expiry() store.Time { return sh.pastQueue.firstAt() }

func (sh *shard) Limits() map[string]*machine.Limit { return sh.limits }

func (sh *shard) Overdue(now store.Time) (kinds []machine.Kind) {
	add := func(queues map[queueKey]*queue) {
		for k, q := range queues {
			kinds = append(kinds, machine.Kind{Handler: k.handler, Schedule: k.schedule, First: q.firstAt(), Tasks: int64(len(q.first(math.MaxInt, now)))})
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
			tasks = append(tasks, q.first(n, machine.Never)...)
		}
		slices.SortFunc(tasks[from:], func(a, b *machine.Task) int {
			return comparePositions(sh.tasks[a.ID].position, sh.tasks[b.ID].position)
		})
	}
	return tasks
}

func (sh *shard) Group(k machine.GroupKey) *machine.Group { return sh.groupStates[k].Group }

// PutGroup stores the state of a group, which may have changed in place.
func (sh *shard) PutGroup(k machine.GroupKey, g *machine.Group) {
	sh.groupsByTime.Remove(sh.groupStates[k].position)
	if g == nil {
		delete(sh.groupStates, k)
		return
	}
	x := groupState{g, sh.newPosition(g.Until)}
	sh.groupStates[k] = x
	sh.groupsByTime.Put(x.position, g)
}

func (sh *shard) Groups(until store.Time, n int) (groups []*machine.Group) {
	for it := sh.groupsByTime.Iterator(); len(groups) < n && it.Next() && it.Key().at <= until; {
		groups = append(groups, it.Value())
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
