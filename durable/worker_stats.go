package durable

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/tickless/tickless/durable/internal/worker"
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

type workerCounters struct {
	worker.Counters
	done, failed, died, overtaken, released, lost, unknown, purged atomic.Int64
}

// Stats returns the Worker's counters.
func (w *Worker) Stats() WorkerStats {
	placesInUse, hanging := 0, 0
	if p := w.places.Load(); p != nil {
		placesInUse, hanging = p.InUse()
	}
	return WorkerStats{
		Concurrency: w.config.concurrency,

		Running:   placesInUse,
		Hanging:   hanging,
		Claimed:   w.counters.Claimed.Load(),
		Done:      w.counters.done.Load(),
		Failed:    w.counters.failed.Load(),
		Died:      w.counters.died.Load(),
		Overtaken: w.counters.overtaken.Load(),
		Released:  w.counters.released.Load(),
		Lost:      w.counters.lost.Load(),
		Purged:    w.counters.purged.Load(),
		Unknown:   w.counters.unknown.Load(),
		Errors:    w.counters.Errors.Load(),
		Claims:    w.counters.Claims.Load(),
		Empty:     w.counters.Empty.Load(),
		Wakeups:   w.counters.Wakeups.Load(),
	}
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
