package durable

import (
	"sync"

	"github.com/tickless/tickless/durable/store"
)

// A Worker learns that a running task was cancelled when it extends the task's lease.
// So a Client that cancels a task makes its own Workers extend the lease immediately.

// A workerSet is the set of a Client's running Workers.
type workerSet struct {
	mu      sync.Mutex // guards workers
	workers map[*Worker]struct{}
}

func (s *workerSet) addWorker(w *Worker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.workers == nil {
		s.workers = make(map[*Worker]struct{})
	}
	s.workers[w] = struct{}{}
}

func (s *workerSet) removeWorker(w *Worker) {
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
			w.run.ExtendLeaseNow(shard, items[i].ID)
		}
		s.mu.Unlock()
	}
}
