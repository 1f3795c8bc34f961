package diskstore

import "container/heap"

// A queue has the tasks of one kind that are due, those that have been due longest
// first.
type queue struct{ tasks tasks }

func (q *queue) len() int       { return len(q.tasks) }
func (q *queue) first() *task   { return q.tasks[0] }
func (q *queue) push(t *task)   { heap.Push(&q.tasks, t) }
func (q *queue) remove(t *task) { heap.Remove(&q.tasks, t.index) }

// tasks is a heap.Interface.
type tasks []*task

func (s tasks) Len() int           { return len(s) }
func (s tasks) Less(i, j int) bool { return s[i].mark().compare(s[j].mark()) < 0 }

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
