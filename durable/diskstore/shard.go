package diskstore

import (
	"bytes"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timingwheel"
)

// A shard is a part of the tasks. One goroutine carries its commands out, and has all of
// it but its queue: see batch.go.
type shard struct {
	s     *Store
	index int
	line  line
	// groups are batches whose sync is to be asked for, or was.
	groups chan group
	// open has an element for each batch that was not answered.
	open chan struct{}
	// busy is set while calls are carried out, of which a group will come.
	busy atomic.Bool
	// written and synced are how many batches were, and begun how many were or are about
	// to be, for whoever reads.
	begun, written, synced atomic.Int64
	// tasksNow is how many tasks there are, for whoever reads.
	tasksNow atomic.Int64

	// tasks are those that are in memory: see task.
	tasks map[string]*task
	spare []*task // those that are in memory no more, to be used again
	// kinds are those that there are, by what they are and by id.
	byID   map[uint32]*kind
	byName map[[2]string]*kind
	kinds  []*kind
	latest *kind // that a task was made of

	waiting  *timingwheel.Wheel[*task] // the window's tasks that are not due yet
	due      int                       // tasks in the queues of the kinds
	inWindow int
	leases   *timingwheel.Wheel[*task]
	running  int

	// told is when every worker will have looked by itself, as the answers to their claims
	// have said. What is due before it wakes them all, and lowers it; nothing else does.
	told store.Time

	numbers
	senders map[string]*sender
	ledgers
	// workers are the latest claims of senders that have not left, and are remembered.
	workers map[string]store.Claim

	filter filter
	// steps are those of the iterators that have filled the window, over keys that were
	// deleted too.
	steps int64

	// These are of the batch under way.

	batch   *pebble.Batch
	finder  *pebble.Iterator // nil until it is needed
	touched []*task
	loaded  []*task // that find has loaded
	noted   []*sender
	now     store.Time

	buf, value []byte // of keys and values
}

func newShard(s *Store, index, shards int) *shard {
	sh := &shard{
		s:       s,
		index:   index,
		tasks:   make(map[string]*task),
		byID:    make(map[uint32]*kind),
		byName:  make(map[[2]string]*kind),
		told:    never,
		senders: make(map[string]*sender),
		workers: make(map[string]store.Claim),
	}
	sh.line.signal = make(chan struct{}, 1)
	sh.groups, sh.open = make(chan group, maxOpen), make(chan struct{}, maxOpen)
	sh.filter = newFilter(&s.config, shards)
	return sh
}

// set and delete add to the batch under way.
func (sh *shard) set(key, value []byte) { sh.must(sh.batch.Set(key, value, nil)) }
func (sh *shard) delete(key []byte)     { sh.must(sh.batch.Delete(key, nil)) }

// A failure is what the shard's goroutine panics with when it cannot go on.
type failure struct{ err error }

func (sh *shard) must(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// find returns the task with an id, with all that there is of it, or nil.
func (sh *shard) find(id string) *task {
	t := sh.tasks[id]
	if t == nil {
		if sh.filter.absent(id) {
			return nil
		}
		e, kind, ok := sh.read(id)
		if !ok {
			sh.filter.vain++
			return nil
		}
		t = &task{Entry: e, whole: true, kind: sh.kindOf(id, kind), saved: saved{e.State, e.At, kind}}
		t.Handler, t.Schedule = t.kind.handler, t.kind.schedule
		sh.tasks[id] = t
		// It is here for this batch: nothing but a touched task is looked at again.
		sh.touch(t)
	}
	if t.State == 0 {
		return nil
	}
	if !t.whole {
		sh.load(t)
		sh.loaded = append(sh.loaded, t) // it may be left as it is
	}
	return t
}

// read reads what the space of tasks has of one, as it was before the batch under way.
// A batch has one iterator for all, which Pebble's Get has not; and Get does not ask the
// filters of the last level, where most tasks are, and most that are asked for are not.
func (sh *shard) read(id string) (e store.Entry, kind uint32, ok bool) {
	key := sh.key(spaceTask, id)
	if sh.finder == nil {
		var err error
		sh.finder, err = sh.s.db.NewIter(&pebble.IterOptions{UseL6Filters: true})
		sh.must(err)
	}
	if !sh.finder.SeekPrefixGE(key) || !bytes.Equal(sh.finder.Key(), key) {
		sh.must(sh.finder.Error())
		return e, 0, false
	}
	value, err := sh.finder.ValueAndErr()
	sh.must(err)
	e.ID = id
	kind, err = readEntry(key, value, &e)
	sh.must(err)
	return e, kind, true
}

// load reads what is missing of a task.
func (sh *shard) load(t *task) {
	if t.whole {
		return
	}
	e, kind, ok := sh.read(t.ID)
	indexed := t.State == store.Pending || t.State == store.Dead
	if !ok || indexed && (e.State != t.State || e.At != t.At) {
		panic(failure{damaged("the task %q is not where an index says", t.ID)})
	}
	t.kind = sh.kindOf(t.ID, kind)
	t.Handler, t.Schedule, t.Record = t.kind.handler, t.kind.schedule, e.Record
	t.Due, t.Crashes, t.Runs, t.Failures = e.Due, e.Crashes, e.Runs, e.Failures
	if indexed {
		t.Attempts = e.Attempts
	}
	t.whole = true
}

func (sh *shard) kindOf(id string, kind uint32) *kind {
	k := sh.byID[kind]
	if k == nil {
		panic(failure{damaged("the task %q has the kind %d, which there is not", id, kind)})
	}
	return k
}
