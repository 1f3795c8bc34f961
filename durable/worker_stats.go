package durable

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tickless/tickless/durable/internal/worker"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timer"
)

// WorkerStats are the counters of one Worker since its first Run.
type WorkerStats struct {
	Concurrency int // how many handlers may run at a time

	Running   int   // running handlers, and places reserved for claims
	Hanging   int   // running handlers whose timeout is over for a second or longer
	Claimed   int64 // attempts claimed
	Done      int64 // runs that succeeded
	Failed    int64 // attempts that failed, including those that are not retried
	Died      int64 // runs that became dead letters
	Released  int64 // attempts whose tasks were handed back to the store
	Overtaken int64 // failed attempts that are not retried, because the task was cancelled or scheduled again
	Lost      int64 // reports that the store refused because the lease was lost
	Purged    int64 // dead letters purged: see WithDeadLimit
	Unknown   int64 // tasks left to other Workers because this one cannot run them
	Errors    int64 // rounds that failed
	Claims    int64 // claims sent
	Empty     int64 // claims that got no task
	Wakeups   int64 // wake-ups by the store for tasks that are due earlier than the Worker expected
}

// counters are statistics that several goroutines count.
type counters[T any] struct {
	mu    sync.Mutex
	stats T // guarded by mu
}

// add adds n to one of the stats.
func (c *counters[T]) add(x *int64, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*x += int64(n)
}

func (c *counters[T]) read() T {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Stats returns the Worker's counters.
func (w *Worker) Stats() WorkerStats {
	st, n := w.counters.read(), &w.loopCounters
	st.Concurrency = w.config.concurrency
	if p := w.places.Load(); p != nil {
		st.Running, st.Hanging = p.InUse()
	}
	st.Claimed, st.Errors = n.Claimed.Load(), n.Errors.Load()
	st.Claims, st.Empty, st.Wakeups = n.Claims.Load(), n.Empty.Load(), n.Wakeups.Load()
	return st
}

// A RecentDead is a run that became a dead letter.
type RecentDead struct {
	When    time.Time // by the Worker's clock, when the store had taken the report
	Key     string
	Handler string
	Attempt int
	Error   string // its beginning
}

// RecentDead returns the latest runs that this Worker made dead letters, at most 16,
// the oldest first. [Client.List] returns all dead letters.
func (w *Worker) RecentDead() []RecentDead {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.recentDead)
}

const maxRecentDead = 16

func (w *Worker) addRecentDead(d RecentDead) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.recentDead = append(w.recentDead[max(0, len(w.recentDead)+1-maxRecentDead):], d)
}

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
		st := w.handlers[name].counters.read()
		st.Handler = name
		handlerStats = append(handlerStats, st)
	}
	return handlerStats
}

func (a *attempt) countClaim() {
	switch {
	case a.isUnsupported():
		a.w.counters.add(&a.w.counters.stats.Unknown, 1)
	case a.handler != nil: // otherwise the record is damaged
		a.handler.counters.add(&a.handler.counters.stats.Claimed, 1)
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
	n.stats.Lateness.Record(a.claimedAt.Sub(a.due))
}

// countHandlerReturn records that the handler has returned. began is when it was
// called, by the Worker's clock.
func (a *attempt) countHandlerReturn(began time.Time) {
	n := &a.handler.counters
	duration := a.w.now().Sub(began)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stats.Running--
	n.stats.Ran.Record(duration)
}
