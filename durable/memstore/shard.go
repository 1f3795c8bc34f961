package memstore

import (
	"math"
	"sync"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timingwheel"
)

// A shard is a part of the tasks, under a lock of its own.
type shard struct {
	s     *Store
	index int

	mu    sync.Mutex
	tasks map[string]*task

	// A task is in one of these, as its State says: a Pending one in waiting until it
	// is due, and in due from then on; a Running one in leases; a Dead one in none, and
	// counted.
	waiting *timingwheel.Wheel[*task]
	due     map[kind]*queue
	overdue int // tasks in due
	leases  *timingwheel.Wheel[*task]
	dead    int

	// told is when every worker will have looked by itself, as the answers to their claims
	// have said. What is due before it wakes them all, and lowers it; nothing else does.
	told store.Time

	fence   int64 // the latest token
	arrival uint64
	paused  bool
	n       store.Counters
	senders map[string]*sender
	// workers are the latest claims of senders that have not left, and are remembered.
	workers map[string]store.Claim
}

// A task is an entry, and where it is.
type task struct {
	store.Entry
	// place is of waiting or of leases, index of the heap in due.
	place timingwheel.ID
	index int
	// arrival is the order in which tasks of one moment came.
	arrival uint64
}

// A kind is what a worker must know to run a task.
type kind struct{ handler, schedule string }

func (t *task) kind() kind { return kind{t.Handler, t.Schedule} }

// never is later than any time.
const never = store.Time(math.MaxInt64)

// The wheels count microseconds, so that nothing is rounded.
const wheelSize = 256

func newWheel(now store.Time) *timingwheel.Wheel[*task] {
	w, err := timingwheel.New[*task](1, wheelSize, int64(now))
	if err != nil {
		panic(err) // the clock shows a time before 1970
	}
	return w
}

func newShard(s *Store, index int) *shard {
	now := s.now()
	return &shard{
		s:       s,
		index:   index,
		tasks:   make(map[string]*task),
		waiting: newWheel(now),
		due:     make(map[kind]*queue),
		leases:  newWheel(now),
		told:    never,
		senders: make(map[string]*sender),
		workers: make(map[string]store.Claim),
	}
}

// advance moves what is due from waiting to due. Every command begins with it.
func (sh *shard) advance(now store.Time) {
	var out [64]timingwheel.Expired[*task]
	for more := true; more; {
		var n int
		n, more = sh.waiting.Advance(int64(now), out[:])
		for _, x := range out[:n] {
			sh.enqueue(x.Value)
		}
	}
}

func (sh *shard) enqueue(t *task) {
	q := sh.due[t.kind()]
	if q == nil {
		q = new(queue)
		sh.due[t.kind()] = q
	}
	q.push(t)
	sh.overdue++
}

// remove takes a task out of its place. It stays in tasks.
func (sh *shard) remove(t *task) {
	switch t.State {
	case store.Pending:
		if _, ok := sh.waiting.Remove(t.place); !ok {
			q := sh.due[t.kind()]
			q.remove(t)
			sh.overdue--
			if q.len() == 0 {
				delete(sh.due, t.kind())
			}
		}
	case store.Running:
		sh.leases.Remove(t.place)
	case store.Dead:
		sh.dead--
	}
	t.State, t.place = 0, timingwheel.ID{}
}

// wait makes a task that is in no place Pending, due at a time.
func (sh *shard) wait(t *task, at store.Time) {
	t.State, t.At, t.Token = store.Pending, at, 0
	t.Stopping, t.Following, t.Next, t.NextTask = false, false, 0, nil
	sh.arrival++
	t.arrival = sh.arrival
	var ok bool
	if t.place, ok = sh.waiting.Add(int64(at), t); !ok {
		sh.enqueue(t)
	}
	if at < sh.told {
		sh.told = at
		sh.s.wake(sh.index)
	}
}

// fresh makes a task that is in no place Pending, with nothing tried.
func (sh *shard) fresh(t *task, at store.Time) {
	t.Due, t.Attempts, t.Crashes, t.Failures, t.Runs = at, 0, 0, nil, 0
	sh.wait(t, at)
}

// run gives a task that is in no place a lease until a time.
func (sh *shard) run(t *task, until store.Time) {
	t.State, t.At = store.Running, until
	t.place, _ = sh.leases.Add(int64(until), t) // a lease is never over when it is given
}

// bury makes a dead letter of a task that is in no place.
func (sh *shard) bury(t *task, now store.Time, text string) {
	t.Failures = store.Note(t.Failures, store.Failure{Attempt: t.Attempts, Time: now, Text: text})
	t.State, t.At, t.Token = store.Dead, now, 0
	sh.dead++
	sh.n.Died++
}

// forget ends a task that is in no place.
func (sh *shard) forget(t *task) { delete(sh.tasks, t.ID) }

// add makes a task that is in no place.
func (sh *shard) add(x store.Task) *task {
	t := &task{}
	t.Task = x
	sh.tasks[x.ID] = t
	return t
}
