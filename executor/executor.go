package executor

import "github.com/tickless/tickless/internal/closed"

// An Executor runs callbacks. [Inline], [Goroutines] and [Pool] are Executors. A program
// may bring its own: many worker pools already have this method, and [Func] turns a
// function into an Executor.
type Executor interface {
	// Submit accepts f, to run it once, at any time and on any goroutine. An error means
	// that f has not run and never will.
	//
	// Submit must not block: a Scheduler calls it on the goroutine that fires all of its
	// timers, and may hold a lock. Submit may queue f, start a goroutine for f, or refuse
	// f. The Executor decides what happens when f panics.
	Submit(f func()) error
}

// A Batcher is an [Executor] that accepts many callbacks at once for less than the cost
// of as many calls of Submit.
type Batcher interface {
	Executor

	// SubmitBatch submits fs in order and returns how many it accepted, counted from the
	// front. The error is nil if and only if it accepted all. The caller may reuse the
	// slice after SubmitBatch returns.
	SubmitBatch(fs []func()) (accepted int, err error)
}

// Func is an [Executor] made from a function, which serves as its Submit method.
type Func func(f func()) error

// Submit calls e(f).
func (e Func) Submit(f func()) error { return e(f) }

// ErrClosed is returned for a callback that is submitted after Close or Shutdown. It
// matches package timer's ErrClosed too, as errors.Is reports.
var ErrClosed = closed.New("executor: closed")
