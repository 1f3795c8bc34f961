package durable

import "sync/atomic"

// WorkerStats are the numbers of one Worker since it first began to run.
type WorkerStats struct {
	Concurrency int // how many handlers may run at a time

	Running   int   // handlers under way, and places taken for tasks that are being claimed
	Claimed   int64 // attempts begun
	Done      int64 // runs that ended well
	Failed    int64 // attempts that failed, those included that are tried no more
	Died      int64 // runs that became dead letters
	Released  int64 // attempts handed back
	Overtaken int64 // attempts that failed when their tasks had been cancelled, or scheduled again: no retry and no dead letter follows
	Lost      int64 // reports that were refused, since the lease was lost before
	Purged    int64 // dead letters that were too old or too many: see WithDeadLimit
	Unknown   int64 // tasks claimed that the Worker does not know how to run, and left to others
	Errors    int64 // rounds of commands with an error
	Claims    int64 // claims sent
	Empty     int64 // claims that got nothing
	Wakeups   int64 // wake-ups for tasks that were scheduled before the next
}

type counters struct {
	claimed, done, failed, died, overtaken, released, lost atomic.Int64
	errors, claims, empty, wakeups, unknown, purged        atomic.Int64
}

// Stats returns the Worker's numbers.
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
