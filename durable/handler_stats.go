package durable

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickless/tickless/durable/internal/worker"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timer"
)

// HandlerStats are a Worker's counters for one handler, since the Worker's first Run.
// An attempt that has ended counts when the store has answered the report on it.
type HandlerStats struct {
	Handler   string
	Running   int   // running handlers
	Claimed   int64 // attempts claimed
	Done      int64 // runs that succeeded
	Retried   int64 // attempts that failed and are retried
	Died      int64 // runs that became dead letters because their last attempt failed
	Overtaken int64 // failed attempts that are not retried, because the task was cancelled or scheduled again
	Dropped   int64 // runs that became dead letters without a call: missed, damaged, no attempts left
	Overran   int64 // successful runs of repeating tasks that ended after the next one was due
	Released  int64 // attempts whose tasks were handed back to the store
	Lost      int64 // attempts whose report the store refused because the lease was lost

	// Lateness is the time from when a run was due until its first attempt was claimed.
	// It counts attempts whose handlers have returned.
	Lateness timer.Histogram
	// Ran has the duration of each call of the handler that has returned.
	Ran timer.Histogram
}

// HandlerStats returns the counters of all handlers of the Worker, sorted by name. With
// n handlers it takes O(n log n).
func (w *Worker) HandlerStats() []HandlerStats {
	w.mu.Lock()
	defer w.mu.Unlock()
	handlerStats := make([]HandlerStats, 0, len(w.handlers))
	for _, name := range slices.Sorted(maps.Keys(w.handlers)) {
		handlerStats = append(handlerStats, w.handlers[name].counters.stats(name))
	}
	return handlerStats
}

// handlerCounters are the counters for HandlerStats.
type handlerCounters struct {
	running, overran                                                 atomic.Int64
	claimed, done, retried, died, dropped, overtaken, released, lost atomic.Int64

	mu            sync.Mutex // guards lateness and ran
	lateness, ran timer.Histogram
}

func (n *handlerCounters) stats(name string) HandlerStats {
	st := HandlerStats{
		Handler:   name,
		Running:   int(n.running.Load()),
		Claimed:   n.claimed.Load(),
		Done:      n.done.Load(),
		Retried:   n.retried.Load(),
		Died:      n.died.Load(),
		Dropped:   n.dropped.Load(),
		Overtaken: n.overtaken.Load(),
		Overran:   n.overran.Load(),
		Released:  n.released.Load(),
		Lost:      n.lost.Load(),
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	st.Lateness, st.Ran = n.lateness, n.ran
	return st
}

func (a *attempt) countClaim() {
	switch {
	case a.isUnsupported():
		a.w.counters.unknown.Add(1)
	case a.handler != nil: // otherwise the record is damaged
		a.handler.counters.claimed.Add(1)
	}
}

// countLateness records the lateness of a run after its first attempt. It ignores
// attempts whose tasks are handed back to the store.
func (a *attempt) countLateness(r *worker.Report) {
	if !a.handlerCalled || a.delivery.Attempt > 1 || r.End == store.HandBack {
		return
	}
	n := &a.handler.counters
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lateness.Record(a.claimedAt.Sub(a.due))
}

// countHandlerReturn records that the handler has returned. began is when it was
// called, by the Worker's clock.
func (a *attempt) countHandlerReturn(began time.Time) {
	n := &a.handler.counters
	n.running.Add(-1)
	duration := a.w.now().Sub(began)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ran.Record(duration)
}
