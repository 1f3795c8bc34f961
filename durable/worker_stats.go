package durable

import "sync/atomic"

// WorkerStats are the counters of one Worker since its first Run.
type WorkerStats struct {
	Concurrency int // how many handlers may run at a time

	Running   int   // running handlers, and places reserved for claims
	Claimed   int64 // attempts claimed
	Done      int64 // runs that succeeded
	Failed    int64 // attempts that failed, including those that are not retried
	Died      int64 // runs that became dead letters
	Released  int64 // attempts handed back
	Overtaken int64 // failed attempts at tasks that were cancelled or scheduled again meanwhile: no retry and no dead letter follows
	Lost      int64 // reports that the store refused because the lease was lost
	Purged    int64 // dead letters purged: see WithDeadLimit
	Unknown   int64 // tasks left to other Workers because this one lacks the handler or schedule
	Errors    int64 // rounds that failed
	Claims    int64 // claims sent
	Empty     int64 // claims that got no task
	Wakeups   int64 // wake-ups by the store for tasks that are due earlier than the next one
}

type counters struct {
	claimed, done, failed, died, overtaken, released, lost atomic.Int64
	errors, claims, empty, wakeups, unknown, purged        atomic.Int64
}

// Stats returns the Worker's counters.
func (w *Worker) Stats() WorkerStats {
	running := 0
	if p := w.places.Load(); p != nil {
		running = p.takenNow()
	}
	return WorkerStats{
		Concurrency: w.config.concurrency,

		Running:   running,
		Claimed:   w.n.claimed.Load(),
		Done:      w.n.done.Load(),
		Failed:    w.n.failed.Load(),
		Died:      w.n.died.Load(),
		Overtaken: w.n.overtaken.Load(),
		Released:  w.n.released.Load(),
		Lost:      w.n.lost.Load(),
		Purged:    w.n.purged.Load(),
		Unknown:   w.n.unknown.Load(),
		Errors:    w.n.errors.Load(),
		Claims:    w.n.claims.Load(),
		Empty:     w.n.empty.Load(),
		Wakeups:   w.n.wakeups.Load(),
	}
}
