// Package share lets a Scheduler run callbacks itself, on the goroutine that finds timers
// due. An executor.Pool counts that goroutine as a worker. So short callbacks wake no
// other goroutine.
package share

// A Pool is an *executor.Pool with the methods that a Scheduler needs.
type Pool interface {
	// Share accepts fs, as SubmitBatch does, for the calling goroutine to run: it must
	// soon call the Work's Run. The callbacks do not wait behind those in the pool's
	// queue. The caller may reuse the slice after Share returns.
	//
	// If the Work has a Batch, Watch must be called when Run has not returned after a few
	// milliseconds. Otherwise callbacks wait behind a slow one. The pool itself sets no
	// timer for this, because that would cost more than short callbacks.
	//
	// On a pool with WithMaxWorkers, Share only calls SubmitBatch, and the Work is empty.
	Share(fs []func()) (Work, error)

	// Watch starts the pool's watchdog if callbacks still wait.
	Watch()

	// Run implements Work.Run.
	Run(w Work)
}

// PoolOf converts an *executor.Pool into a Pool. Package executor sets PoolOf.
var PoolOf func(pool any) Pool

// A Work holds the callbacks that a goroutine must run after Share. The zero Work is empty.
type Work struct {
	Pool  Pool
	First func()
	Batch any // the other callbacks, in the pool's own form; nil if First is the only one
}

// Run runs the callbacks, and then those in the pool's queue, until none waits. So the
// caller must not rely on Run to return soon. (Run takes from the queue because its
// goroutine already has a processor, which a new worker might have to wait for.) If a
// callback panics or calls runtime.Goexit, another goroutine continues with the callbacks
// after it.
func (w Work) Run() {
	if w.Pool != nil {
		w.Pool.Run(w)
	}
}
