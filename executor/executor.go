package executor

import "github.com/tickless/tickless/internal/closed"

// An Executor runs callbacks: an [Inline], a [Goroutines], a [Pool], or any type with
// this method. [Func] turns a function into an Executor.
type Executor interface {
	// Submit accepts f, to run it once, at any time and on any goroutine. An error means
	// that f has not run and never will.
	//
	// Submit must not block: a Scheduler calls it on the goroutine that fires all of its
	// timers, and may hold a lock.
	Submit(f func()) error
}

// A Batcher is an [Executor] that accepts many callbacks in one call, at less cost than
// many calls of Submit.
type Batcher interface {
	Executor

	// SubmitBatch submits fs in order. It accepts fs[:accepted] and refuses the rest. The
	// error is nil if and only if it accepts all. SubmitBatch does not keep the slice.
	SubmitBatch(fs []func()) (accepted int, err error)
}

// Func is an [Executor] made from a function: Submit calls the function.
type Func func(f func()) error

// Submit calls e(f).
func (e Func) Submit(f func()) error { return e(f) }

// ErrClosed is the error for a callback that is submitted after Close or Shutdown.
// errors.Is reports that it matches package timer's ErrClosed.
var ErrClosed = closed.New("executor: closed")
