package executor

import (
	"context"
	"runtime/pprof"
)

// A Goroutines runs each callback on its own goroutine, as time.AfterFunc does. So no
// callback waits for another. Make one with [NewGoroutines].
type Goroutines struct {
	gate
}

var _ Batcher = (*Goroutines)(nil)

// NewGoroutines returns an executor that starts a goroutine for each callback.
func NewGoroutines(opts ...Option) *Goroutines {
	e := new(Goroutines)
	e.init(newConfig("NewGoroutines", opts))
	return e
}

// Submit starts f and returns nil, or returns [ErrClosed].
func (e *Goroutines) Submit(f func()) error {
	if !e.beginCallback() {
		return e.refuseCallbacks(1)
	}
	go e.runCallback(f)
	return nil
}

// SubmitBatch starts each of fs, in order, on its own goroutine.
func (e *Goroutines) SubmitBatch(fs []func()) (accepted int, err error) {
	e.mustBeMade()
	for i, f := range fs {
		if !e.beginCallback() {
			return i, e.refuseCallbacks(len(fs) - i)
		}
		go e.runCallback(f)
	}
	return len(fs), nil
}

func (e *Goroutines) runCallback(f func()) {
	// Drop the labels inherited from the submitting goroutine, as time.AfterFunc does.
	pprof.SetGoroutineLabels(context.Background())
	e.gate.runCallback(f)
}

// Stats returns the counts. Each running callback counts as a worker.
func (e *Goroutines) Stats() Stats {
	s := e.stats()
	s.Workers = s.Running
	return s
}
