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
	tasks []*task
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
	heap.Push(q, x)
}

func (q *queue) remove(x *task) {
	heap.Remove(q, x.index)
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

// first returns the first n tasks.
func (q *queue) first(n int) (tasks []*machine.Task) {
	n = min(n, len(q.tasks))
	removed := make([]*task, n)
	for i := range removed {
		removed[i] = heap.Pop(q).(*task)
		tasks = append(tasks, &removed[i].Task)
	}
	for _, x := range removed {
		heap.Push(q, x)
	}
	return tasks
}

// The methods of heap.Interface.

func (q *queue) Len() int           { return len(q.tasks) }
func (q *queue) Less(i, j int) bool { return q.tasks[i].isBefore(q.tasks[j]) }

func (q *queue) Swap(i, j int) {
	q.tasks[i], q.tasks[j] = q.tasks[j], q.tasks[i]
	q.tasks[i].index, q.tasks[j].index = i, j
}

func (q *queue) Push(x any) {
	t := x.(*task)
	t.index = len(q.tasks)
	q.tasks = append(q.tasks, t)
}

func (q *queue) Pop() any {
	n := len(q.tasks) - 1
	t := q.tasks[n]
	q.tasks[n] = nil
	q.tasks = q.tasks[:n]
	return t
}

// A headQueue is a heap of queues, ordered by their first tasks.
type headQueue []*queue

func (h headQueue) Len() int           { return len(h) }
func (h headQueue) Less(i, j int) bool { return h[i].tasks[0].isBefore(h[j].tasks[0]) }
func (h headQueue) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *headQueue) Push(x any)        { *h = append(*h, x.(*queue)) }

func (h *headQueue) Pop() any {
	q := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return q
}
