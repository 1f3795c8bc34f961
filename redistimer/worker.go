package redistimer

import (
	"context"
)

// A Worker takes tasks that are due and runs their handlers. Make one with
// [NewWorker], tell it its handlers, and Run it. Any number of Workers, in one
// process or many, share a queue.
type Worker struct {
	client *Client
	config workerConfig
}

// NewWorker returns a Worker for the client's queue. It panics if an option is
// out of its range.
func NewWorker(c *Client, opts ...WorkerOption) *Worker {
	return &Worker{client: c, config: newWorkerConfig(opts)}
}

// Handle has the Worker run h for tasks whose Handler is name. A task whose
// handler the worker does not know is a failed attempt: it is tried again later,
// by another worker maybe, and becomes a dead letter in the end. Handle panics
// if name is empty or taken, if h is nil, and after Run.
func (w *Worker) Handle(name string, h Handler, opts ...HandlerOption) {}

// Run runs tasks until the context is cancelled or Shutdown is called, and then
// shuts down by itself: it returns when every handler has returned, or after the
// time of [WithShutdownTimeout], with what the handlers had handed back to the
// queue. It returns nil, or at once an error of [Client.Check]. It may be called
// once.
func (w *Worker) Run(ctx context.Context) error { panic("to come") }

// Shutdown ends Run: no more tasks are started, and those that were claimed but
// not started are handed back. It waits for handlers that are under way until
// ctx is done; then it cancels their contexts and hands their tasks back, which
// other workers may run at once, and returns the context's error. Attempts
// that are handed back do not count. Shutdown returns nil if every handler has
// returned. It may be called more than once.
func (w *Worker) Shutdown(ctx context.Context) error { panic("to come") }

// WorkerStats are the numbers of one Worker since it began to run.
type WorkerStats struct {
	Running   int // handlers under way
	Claimed   int64
	Done      int64
	Failed    int64 // attempts that failed, those included that are tried no more
	Died      int64
	Released  int64
	Lost      int64 // leases that were lost before the handler's report
	Cancelled int64
	Errors    int64 // commands to Redis that failed
	Claims    int64 // claims sent
	Empty     int64 // claims that got nothing
	Wakeups   int64 // wake-ups for tasks that were scheduled before the next
}

// Stats returns the Worker's numbers.
func (w *Worker) Stats() WorkerStats { panic("to come") }
