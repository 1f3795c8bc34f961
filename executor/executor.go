package executor

import "github.com/tickless/tickless/internal/closed"

// An Executor runs callbacks. This package has three: [Inline], [Goroutines] and
// [Pool]. A program may bring its own: many pools have this method already, and [Func]
// makes one of a function.
type Executor interface {
	// Submit accepts f, to run it once, at any time and on any goroutine. An error
	// means that f has not run and never will.
	//
	// Submit must not block: a Scheduler calls it on the goroutine that fires all of
	// its timers, and may hold a lock. It queues f, starts a goroutine for it, or
	// refuses it. The Executor decides what becomes of a panic of f.
	Submit(f func()) error
}

// A Batcher is an [Executor] that takes many callbacks at once for less than it takes
// them one by one.
type Batcher interface {
	Executor

	// SubmitBatch submits fs in order and returns how many of them, from the front,
	// it accepted. The error is nil if and only if it accepted all. The caller may
	// reuse the slice after the return.
	SubmitBatch(fs []func()) (accepted int, err error)
}

// Func is a function that is an [Executor]: its Submit.
type Func func(f func()) error

// Submit calls e(f).
func (e Func) Submit(f func()) error { return e(f) }

// ErrClosed is returned for work that is submitted after Close or Shutdown. errors.Is
// reports that it is package timer's ErrClosed too.
var ErrClosed = closed.New("executor: closed")
