package durable

import (
	"slices"
	"sync"

	"github.com/tickless/tickless/durable/store"
)

// A Worker learns that a running task was cancelled when it next extends the task's
// lease. To avoid this delay, the Client that cancels the task makes its own Workers
// extend the lease at once.

// A workerSet is the set of a Client's running Workers.
type workerSet struct {
	mu      sync.Mutex
	workers map[*Worker]struct{}
}

func (s *workerSet) add(w *Worker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.workers == nil {
		s.workers = make(map[*Worker]struct{})
	}
	s.workers[w] = struct{}{}
}

func (s *workerSet) remove(w *Worker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.workers, w)
}

// notifyCancelled makes the Workers extend the leases of running tasks that were
// cancelled.
func (s *workerSet) notifyCancelled(shard int, items []store.Item, outcomes []Outcome) {
	for i, outcome := range outcomes {
		if outcome != Stopping {
			continue
		}
		s.mu.Lock()
		for w := range s.workers {
			w.loops[shard].extendNow(items[i].ID)
		}
		s.mu.Unlock()
	}
}

// extendNow makes the loop extend the lease of the task id at once, if the loop has
// that lease.
func (l *loop) extendNow(id string) {
	l.mu.Lock()
	l.urgent = append(l.urgent, id)
	l.mu.Unlock()
	l.wake()
}

// takeUrgent returns the running attempts whose leases must be extended at once. It
// takes at most store.MaxBatch ids from l.urgent. The next round takes the others.
func (l *loop) takeUrgent() (urgent []*attempt) {
	l.mu.Lock()
	ids := l.urgent[:min(len(l.urgent), store.MaxBatch)]
	l.urgent = l.urgent[len(ids):]
	l.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	for a := l.leases.first(); a != nil && len(urgent) < store.MaxBatch; a = a.next {
		if slices.Contains(ids, a.lease.ID) {
			urgent = append(urgent, a)
		}
	}
	return urgent
}
