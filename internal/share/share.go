// Package share lets a Scheduler run callbacks itself, as a worker of an executor.Pool,
// on the goroutine that finds timers due. So short callbacks wake no other goroutine.
package share

// A Pool is an *executor.Pool with the methods that a Scheduler needs.
type Pool interface {
	// Share accepts fs, as SubmitBatch does. The calling goroutine must run them: it must
	// soon call the Work's Run.
	//
	// If the Work has a Batch, and Run has not returned after a few milliseconds, another
	// goroutine must call Watch. Otherwise callbacks wait behind a slow one.
	//
	// On a pool with WithMaxWorkers, Share only calls SubmitBatch, and the Work is empty.
	Share(fs []func()) (Work, error)

	// Watch starts a worker for each callback that still waits, if callbacks have taken
	// long since Share. Less than a millisecond after Share, it starts the pool's watchdog
	// instead.
	Watch()

	// Run implements Work.Run.
	Run(w Work)
}

// PoolOf converts an *executor.Pool into a Pool. Package executor sets PoolOf.
var PoolOf func(pool any) Pool

// A Work holds the callbacks that a goroutine must run after Share. The zero Work is
// empty.
type Work struct {
	Pool  Pool
	First func()
	Batch any // the other callbacks, in the pool's own form; nil if First is the only one
}

// Run runs the callbacks, and then those in the pool's queue, until none waits. So it may
// take long. If a callback panics or calls runtime.Goexit, another goroutine continues
// with the remaining callbacks.
func (w Work) Run() {
	if w.Pool != nil {
		w.Pool.Run(w)
	}
}
