package memstore

import (
	"container/heap"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/machine"
)

// A queue is a heap of tasks, ordered by At. If At is equal, the task that arrived
// first comes first.
type queue struct {
	key   queueKey
	home  map[queueKey]*queue // has the queue while it is not empty; nil if it is always there
	tasks heapOf[*task]
	index int // in a heap of queues
}

// queueIn returns the queue with a key, which may be new.
func queueIn(home map[queueKey]*queue, k queueKey) *queue {
	q := home[k]
	if q == nil {
		q = &queue{key: k, home: home}
		home[k] = q
	}
	return q
}

func (q *queue) push(x *task) {
	x.queue = q
	heap.Push(&q.tasks, x)
}

func (q *queue) remove(x *task) {
	heap.Remove(&q.tasks, x.index)
	x.queue = nil
}

// visitUntil calls f for each task of the subtree at index i whose At is not after until.
func (q *queue) visitUntil(i int, until store.Time, f func(*task)) {
	if i < len(q.tasks) && q.tasks[i].At <= until {
		f(q.tasks[i])
		q.visitUntil(2*i+1, until, f)
		q.visitUntil(2*i+2, until, f)
	}
}

// firstAt returns the At of the first task, or machine.Never.
func (q *queue) firstAt() store.Time {
	if len(q.tasks) == 0 {
		return machine.Never
	}
	return q.tasks[0].At
}

func (x *task) isBefore(y *task) bool {
	return x.At < y.At || x.At == y.At && x.arrival < y.arrival
}

func (x *task) indexInHeap() *int { return &x.index }

// isBefore compares queues by their first tasks.
func (q *queue) isBefore(other *queue) bool { return q.tasks[0].isBefore(other.tasks[0]) }
func (q *queue) indexInHeap() *int          { return &q.index }
