package durable

import (
	"slices"
	"sync"

	"github.com/tickless/tickless/durable/store"
)

// A handler is told that its task was cancelled with the next extension of its lease. The
// Workers of the Client that has cancelled it extend the lease at once: the store says
// whether the attempt that they run is still the one that was meant.

// A workforce is the Workers of a Client that run.
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

// cancelled tells the Workers of the items of a command whose tasks run.
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

// extendNow has the loop extend a lease that it may have.
func (l *loop) extendNow(id string) {
	l.mu.Lock()
	l.urgent = append(l.urgent, id)
	l.mu.Unlock()
	l.wake()
}

// urgently returns the attempts under way whose leases are to be extended now.
func (l *loop) urgently() (out []*attempt) {
	l.mu.Lock()
	ids := l.urgent
	l.urgent = nil
	l.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	for a := l.held.first(); a != nil && len(out) < store.MaxBatch; a = a.next {
		if slices.Contains(ids, a.hold.ID) {
			out = append(out, a)
		}
	}
	return out
}
