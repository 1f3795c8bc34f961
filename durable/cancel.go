package durable

import (
	"slices"
	"sync"

	"github.com/tickless/tickless/durable/store"
)

// A handler learns that its task was cancelled when its lease is next extended. The
// Workers of the Client that has cancelled the task extend the lease at once. The
// store's answer says whether their attempt is the cancelled one.

// A workforce is the set of a Client's running Workers.
type workforce struct {
	mu      sync.Mutex
	workers map[*Worker]struct{}
}

func (f *workforce) add(w *Worker) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.workers == nil {
		f.workers = make(map[*Worker]struct{})
	}
	f.workers[w] = struct{}{}
}

func (f *workforce) remove(w *Worker) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.workers, w)
}

// cancelled notifies the Workers of the items whose tasks are running.
func (f *workforce) cancelled(shard int, items []store.Item, outcomes []Outcome) {
	for i, o := range outcomes {
		if o != Stopping {
			continue
		}
		f.mu.Lock()
		for w := range f.workers {
			w.loops[shard].extendNow(items[i].ID)
		}
		f.mu.Unlock()
	}
}

// extendNow makes the loop extend a lease, if it has the lease.
func (l *loop) extendNow(id string) {
	l.mu.Lock()
	l.urgent = append(l.urgent, id)
	l.mu.Unlock()
	l.wake()
}

// urgently returns the running attempts whose leases must be extended now.
func (l *loop) urgently() (out []*attempt) {
	l.mu.Lock()
	ids := l.urgent
	l.urgent = nil
	l.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	for a := l.held.first(); a != nil && len(out) < store.MaxBatch; a = a.next {
		if slices.Contains(ids, a.lease.ID) {
			out = append(out, a)
		}
	}
	return out
}
