// Package share connects a Scheduler with an executor.Pool: the goroutine that finds
// timers due runs their callbacks itself, so that no other goroutine has to wake up for
// short callbacks.
package share

// A Pool is an *executor.Pool as a Scheduler uses it.
type Pool interface {
	// Share accepts fs as SubmitBatch does, but for the calling goroutine to run: it must
	// soon call the Work's Run. fs do not wait for the callbacks in the pool's queue. The
	// caller may reuse the slice after Share returns.
	//
	// If the Work has a Batch and Run does not return within a few milliseconds, the
	// caller must call Watch, so that workers run what waits behind a slow callback. The
	// pool itself sets no timer, because that would cost more than short callbacks.
	//
	// A pool with WithMaxWorkers does what SubmitBatch does, and the Work is empty.
	Share(fs []func()) (Work, error)

	// Watch sets the pool's watchdog if callbacks still wait.
	Watch()

	// Run implements Work.Run.
	Run(w Work)
}

// Of returns the Pool of an *executor.Pool. Package executor sets Of.
var Of func(pool any) Pool

// Work is the callbacks that Share has given to a goroutine. The zero Work is empty.
type Work struct {
	Pool  Pool
	First func()
	Batch any // the other callbacks, in the pool's own form; nil if First is the only one
}

// Run runs the callbacks, and then those that wait in the pool's queue, until none is
// left: the calling goroutine has a processor already, while a new worker might wait for
// one. So the caller must not rely on Run to return soon. If a callback panics or calls
// runtime.Goexit, another goroutine continues with the callbacks after it.
func (w Work) Run() {
	if w.Pool != nil {
		w.Pool.Run(w)
	}
}
