package diskstore

import (
	"bytes"
	"cmp"
	"strings"
	"time"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timingwheel"
)

// A task is an entry, and where it is. In memory are those that run, those in the
// window, and those that the batch under way has to do with. A task that is gone, or was
// never there, has no State.
type task struct {
	store.Entry
	kind *kind
	// lease is how long the lease was given for, and sender and number who claimed it.
	lease  time.Duration
	sender string
	number int64

	// whole says that the Entry is: of a task that was read from an index only what the
	// index knows is there.
	whole bool
	// place is of the window's wheel, or of leases; index of the heap of its kind. A
	// Pending task that has neither is on the disk alone.
	place    timingwheel.ID
	inWindow bool
	index    int

	// saved is where it is on the disk.
	saved saved
	// touched says that the batch under way has changed it, and body that it has
	// changed what is kept in the space of tasks.
	touched, body bool
}

// A saved is where a task is on the disk, before the batch under way.
type saved struct {
	state store.State // 0: nowhere
	at    store.Time
	kind  uint32
}

// A kind is what a worker must know to run a task, and its part of the window: see
// window.go.
type kind struct {
	id                uint32
	handler, schedule string

	due queue
	n   int // tasks in the window, those included that are due
	// mark is where the window ends: what is Pending and before it is in memory.
	mark mark
	// over counts the keys that were deleted in front of the window one by one.
	over int
	// head is the one on the disk: see head.go.
	head savedHead
}

// A mark is a place in the order in which tasks are due.
type mark struct {
	at store.Time
	id string
}

func (a mark) compare(b mark) int {
	return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.id, b.id))
}

func (t *task) mark() mark { return mark{t.At, t.ID} }

// claimed is what a worker gets of a task. The record of one that came with the batch
// under way is in its call, whose memory is used again; any other was read for this.
func (t *task) claimed() store.Claimed {
	x := store.Claimed{Task: t.Task, Token: t.Token, Due: t.Due, Attempts: t.Attempts - 1, Crashes: t.Crashes}
	if t.body {
		x.Record = bytes.Clone(x.Record)
	}
	return x
}

// maxSpare is how many tasks are kept to be used again: those of a batch or two.
const maxSpare = 512

// newTask returns a task that is zero.
func (sh *shard) newTask() *task {
	if n := len(sh.spare); n > 0 {
		t := sh.spare[n-1]
		sh.spare = sh.spare[:n-1]
		return t
	}
	return new(task)
}

// drop is for a task that nothing has any more.
func (sh *shard) drop(t *task) {
	if len(sh.spare) < maxSpare {
		*t = task{}
		sh.spare = append(sh.spare, t)
	}
}

// strip forgets what can be read again.
func (t *task) strip() { t.Record, t.Failures, t.whole = nil, nil, false }
