package memstore

import (
	"cmp"

	"github.com/emirpasic/gods/v2/trees/redblacktree"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/machine"
)

// A position orders tasks by At. If At is equal, the task that arrived first comes first.
type position struct {
	at      store.Time
	arrival uint64
}

func comparePositions(a, b position) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.arrival, b.arrival))
}

// A queue has tasks in the order of their positions.
type queue struct {
	*redblacktree.Tree[position, *task]
	key queueKey // of a queue of Pending tasks
}

func newQueue(k queueKey) *queue {
	return &queue{redblacktree.NewWith[position, *task](comparePositions), k}
}

// queueIn returns the queue with a key, which may be new.
func queueIn(home map[queueKey]*queue, k queueKey) *queue {
	q := home[k]
	if q == nil {
		q = newQueue(k)
		home[k] = q
	}
	return q
}

// first returns the first n tasks whose At is not after until.
func (q *queue) first(n int, until store.Time) (tasks []*machine.Task) {
	for it := q.Iterator(); len(tasks) < n && it.Next() && it.Key().at <= until; {
		tasks = append(tasks, &it.Value().Task)
	}
	return tasks
}

// firstAt returns the At of the first task, or machine.Never.
func (q *queue) firstAt() store.Time {
	if x := q.Left(); x != nil {
		return x.Key.at
	}
	return machine.Never
}
