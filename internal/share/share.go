// Package share has what a Scheduler and an executor.Pool need of each other: the
// goroutine that finds timers due runs their callbacks itself, so that no other goroutine
// has to wake up for short ones.
package share

// A Pool is an *executor.Pool's side of it.
type Pool interface {
	// Share accepts fs, as SubmitBatch does, for the calling goroutine to run: it must
	// soon call the Work's Run. They do not wait for those in the pool's queue. The caller
	// may reuse the slice after the return.
	//
	// If the Work has a Rest and does not return within a few milliseconds, the caller must
	// call Watch: then workers run what waits behind a callback that takes long. The pool
	// sets no timer, which costs more than short callbacks.
	//
	// A pool with WithMaxWorkers does what SubmitBatch does, and the Work is empty.
	Share(fs []func()) (Work, error)

	// Watch makes the pool look after callbacks that still wait.
	Watch()

	// Run runs w, for w.Run.
	Run(w Work)
}

// Of returns the Pool of an *executor.Pool. Package executor sets it.
var Of func(pool any) Pool

// Work is callbacks that a goroutine has to run. The zero Work is none.
type Work struct {
	Pool  Pool
	First func()
	Rest  any // the Pool knows; nil if First is all
}

// Run runs the callbacks, and then others that wait in the pool's queue, until there are
// none: the calling goroutine has a processor, for which a new worker might wait. So
// nobody may wait for its end. If a callback panics or calls runtime.Goexit, another
// goroutine goes on behind it.
func (w Work) Run() {
	if w.Pool != nil {
		w.Pool.Run(w)
	}
}
