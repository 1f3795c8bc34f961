package executor

import (
	"context"

	"runtime/pprof"
)

// A Goroutines runs each callback on a goroutine of its own, as time.AfterFunc does.
// No callback ever waits for another. Each costs the start of a goroutine. Make one
// with [NewGoroutines].
type Goroutines struct {
	gate gate // first: see gate
}

var _ Batcher = (*Goroutines)(nil)

// NewGoroutines returns an executor that starts a goroutine for each callback.
func NewGoroutines(opts ...Option) *Goroutines {
	e := new(Goroutines)
	e.gate.init(newConfig("NewGoroutines", opts))
	return e
}

// Submit starts f and returns nil, or returns [ErrClosed].
func (e *Goroutines) Submit(f func()) error {
	if !e.gate.enter() {
		return e.gate.refuse(1)
	}
	go e.run(f)
	return nil
}

// SubmitBatch starts each of fs, in order, on its own goroutine.
func (e *Goroutines) SubmitBatch(fs []func()) (accepted int, err error) {
	for i, f := range fs {
		if !e.gate.enter() {
			return i, e.gate.refuse(len(fs) - i)
		}
		go e.run(f)
	}
	return len(fs), nil
}

func (e *Goroutines) run(f func()) {
	defer e.gate.leave()
	defer e.gate.catch()
	// Not those of the goroutine that has submitted f, as with time.AfterFunc.
	pprof.SetGoroutineLabels(context.Background())
	f()
}

// Close refuses new work, and returns nil. It waits for nothing: callbacks that were
// accepted run to their end.
func (e *Goroutines) Close() error {
	e.gate.close()
	return nil
}

// Shutdown refuses new work and waits for every callback to end.
func (e *Goroutines) Shutdown(ctx context.Context) error { return e.gate.shutdown(ctx) }

// MayBlock reports false: Submit never waits.
func (e *Goroutines) MayBlock() bool { return false }

// Stats returns the counts. Nothing is ever queued. Each running callback counts as a
// worker.
func (e *Goroutines) Stats() Stats {
	s := e.gate.stats()
	s.Workers, s.PeakWorkers = s.Running, int(e.gate.peak.Load())
	return s
}
