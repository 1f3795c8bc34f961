package requests

import "time"

// A Backend is one implementation of timers under load. It keeps the handles
// of its timers itself, by request, because their types differ; their memory
// is allocated before Open and so is no part of the figures, for any backend.
type Backend interface {
	// Name is the heading of the backend's column.
	Name() string
	// Open makes what the timers stand on.
	Open()
	// Start starts the timeout of request i, which calls f after d. It is
	// called at most once for each i, by one goroutine at a time for each i.
	Start(i int, d time.Duration, f func()) error
	// Stop stops the timeout of request i, which was started by the same
	// goroutine, and reports whether it kept f from running.
	Stop(i int) bool
	// Fired tells that the callback of request i runs and that nobody will
	// stop it any more: what is kept for it may go.
	Fired(i int)
	// Close ends the backend, waits for the callbacks that run, and returns
	// how many timers were still pending. No other call is under way.
	Close() (pending int, err error)
}
