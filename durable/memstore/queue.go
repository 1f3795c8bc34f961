package memstore

import (
	"cmp"
	"container/heap"
)

// A queue has the tasks of one kind that are due, or those that run: the one with the
// earliest At first, and of one moment the one that came first.
type queue struct {
	kind  kind
	tasks tasks
}

func (q *queue) len() int     { return len(q.tasks) }
func (q *queue) first() *task { return q.tasks[0] }

func (q *queue) push(x *task) {
	x.queue = q
	heap.Push(&q.tasks, x)
}

func (q *queue) remove(x *task) {
	heap.Remove(&q.tasks, x.index)
	x.queue = nil
}

// tasks is a heap.Interface.
type tasks []*task

func (s tasks) Len() int { return len(s) }

func (s tasks) Less(i, j int) bool { return s[i].before(s[j]) }

func (x *task) before(y *task) bool { return x.compare(y) < 0 }

func (x *task) compare(y *task) int {
	return cmp.Or(cmp.Compare(x.At, y.At), cmp.Compare(x.arrival, y.arrival))
}

func (s tasks) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i, j
}

func (s *tasks) Push(x any) {
	t := x.(*task)
	t.index = len(*s)
	*s = append(*s, t)
}

func (s *tasks) Pop() any {
	n := len(*s) - 1
	t := (*s)[n]
	(*s)[n] = nil
	*s = (*s)[:n]
	return t
}
