package requests

import "time"

// A Backend is one implementation of timers under load. It keeps its timers' handles by
// request. Its constructor allocates the memory for the handles, so that no backend's
// figures include it.
type Backend interface {
	// Name is the heading of the backend's column.
	Name() string
	// Open creates what the timers need, such as a Scheduler.
	Open()
	// Start starts the timeout of request i, which calls f after d. It is called at
	// most once for each i.
	Start(i int, d time.Duration, f func()) error
	// Stop stops the timeout of request i and reports whether it prevented the call of
	// f. The goroutine that called Start for i calls it.
	Stop(i int) bool
	// Fired says that the callback of request i runs and that Stop will not be called:
	// the backend may drop the handle.
	Fired(i int)
	// Close closes the backend, waits for running callbacks, and returns how many
	// timers are still pending. No other call runs at the same time.
	Close() (pending int, err error)
}
