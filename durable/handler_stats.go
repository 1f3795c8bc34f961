package durable

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timer"
)

// HandlerStats are a Worker's numbers of the tasks of one handler since it first began
// to run. What has become of an attempt is counted when the store has taken the report.
type HandlerStats struct {
	Handler  string
	Running  int   // handlers under way
	Claimed  int64 // attempts begun
	Done     int64 // runs that ended well
	Retried  int64 // attempts that failed and are followed by another
	Died     int64 // runs that became dead letters because their last attempt failed
	Dropped  int64 // runs that became dead letters without the handler: missed, damaged, no attempts left
	Released int64 // attempts handed back
	Lost     int64 // attempts whose report was refused, since the lease was lost before

	// Lateness is how long after the run was due its first attempt was claimed. Ran is
	// how long handlers took; those that still run are not in it.
	Lateness timer.Histogram
	Ran      timer.Histogram
}

// HandlerStats returns the numbers of each handler that the Worker has, by name.
// O(handlers).
func (w *Worker) HandlerStats() []HandlerStats {
	w.mu.Lock()
	handlers := make([]*handler, 0, len(w.handlers))
	for _, h := range w.handlers {
		handlers = append(handlers, h)
	}
	w.mu.Unlock()
	slices.SortFunc(handlers, func(a, b *handler) int { return strings.Compare(a.name, b.name) })
	all := make([]HandlerStats, 0, len(handlers))
	for _, h := range handlers {
		all = append(all, h.n.read(h.name))
	}
	return all
}

// handlerCounters are what is counted for HandlerStats.
type handlerCounters struct {
	running                                            atomic.Int64
	claimed, done, retried, died, dropped, freed, lost atomic.Int64

	mu            sync.Mutex
	lateness, ran timer.Histogram
}

func (n *handlerCounters) read(name string) HandlerStats {
	st := HandlerStats{
		Handler:  name,
		Running:  int(n.running.Load()),
		Claimed:  n.claimed.Load(),
		Done:     n.done.Load(),
		Retried:  n.retried.Load(),
		Died:     n.died.Load(),
		Dropped:  n.dropped.Load(),
		Released: n.freed.Load(),
		Lost:     n.lost.Load(),
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	st.Lateness, st.Ran = n.lateness, n.ran
	return st
}

// countClaim counts an attempt that was claimed now, by the store's clock.
func (a *attempt) countClaim(now store.Time) {
	h := a.handler
	if a.unknown() {
		a.loop.w.n.unknown.Add(1)
		return
	}
	if h == nil {
		return // the record is damaged, and does not say whose it is
	}
	h.n.claimed.Add(1)
	if a.d.Attempt > 1 {
		return // it was due when the attempt before had waited
	}
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	h.n.lateness.Record(now.Sub(a.due))
}

// countRun counts that the handler has returned, which began at a time of the Worker's.
func (a *attempt) countRun(began time.Time) {
	n := &a.handler.n
	n.running.Add(-1)
	took := a.loop.w.now().Sub(began)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ran.Record(took)
}

// countEnd counts a report, and whether the store has accepted it.
func (r *report) countEnd(accepted bool) {
	if r.a.unknown() || r.a.handler == nil {
		return
	}
	n := &r.a.handler.n
	switch {
	case !accepted:
		n.lost.Add(1)
	case r.end == store.Done:
		n.done.Add(1)
	case r.end == store.HandBack:
		n.freed.Add(1)
	case r.end == store.Retry:
		n.retried.Add(1)
	case r.end == store.Dropped:
		n.dropped.Add(1)
	default:
		n.died.Add(1)
	}
}
