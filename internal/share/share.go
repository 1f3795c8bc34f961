// Package share lets a Scheduler run callbacks itself, as a worker of an executor.Pool,
// on the goroutine that finds timers due. So short callbacks wake no other goroutine.
package share

import "time"

// A Pool is an *executor.Pool with the methods that a Scheduler needs.
type Pool interface {
	// Share accepts fs, as SubmitBatch does. The calling goroutine must run them: it must
	// soon call the Work's Run. On a pool with WithMaxWorkers, Share only calls
	// SubmitBatch, and the Work is empty.
	//
	// Share also starts workers for callbacks of earlier calls that wait behind slow ones.
	// nextCall is the time in which the caller will call Share again, with or without
	// callbacks. If that is long, the pool's watchdog does this instead.
	Share(fs []func(), nextCall time.Duration) (Work, error)

	// Run implements Work.Run.
	Run(w Work)
}

// PoolOf converts an *executor.Pool into a Pool. Package executor sets PoolOf.
var PoolOf func(pool any) Pool

// CallbacksTakeLong is called when a pool has noticed that callbacks wait behind others that
// take long. Package timer sets it. It must not call the pool, whose lock is held.
var CallbacksTakeLong = func() {}

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
