package executor

import "context"

// An Inline runs each callback on the goroutine that submits it, before Submit
// returns. It suits deterministic tests, single-threaded event loops, and callbacks
// so short that any hand-over would cost more. Make one with [NewInline].
//
// A callback that blocks blocks its submitter. A callback that submits another runs
// that inside itself. runtime.Goexit ends the submitting goroutine, as it would in a
// plain call: a t.FailNow in a callback ends its test, and the rest of a batch is
// then neither run nor accepted.
type Inline struct {
	gate gate // first: see gate
}

var _ Batcher = (*Inline)(nil)

// NewInline returns an executor that runs callbacks on their submitters.
func NewInline(opts ...Option) *Inline {
	e := new(Inline)
	e.gate.init(newConfig("NewInline", opts))
	return e
}

// Submit runs f and returns nil, or returns [ErrClosed].
func (e *Inline) Submit(f func()) error {
	if !e.gate.enter() {
		return e.gate.refuse(1)
	}
	e.run(f)
	return nil
}

// SubmitBatch runs fs in order. It stops with [ErrClosed] when one of them,
// or another goroutine, shuts e down in the middle.
func (e *Inline) SubmitBatch(fs []func()) (accepted int, err error) {
	for i, f := range fs {
		if !e.gate.enter() {
			return i, e.gate.refuse(len(fs) - i)
		}
		e.run(f)
	}
	return len(fs), nil
}

func (e *Inline) run(f func()) {
	defer e.gate.leave()
	defer e.gate.catch()
	f()
}

// Close refuses new work, and returns nil. It waits for nothing: callbacks that were
// accepted run to their end.
func (e *Inline) Close() error {
	e.gate.close()
	return nil
}

// Shutdown refuses new work and waits for the callbacks that other goroutines
// are running.
func (e *Inline) Shutdown(ctx context.Context) error { return e.gate.shutdown(ctx) }

// MayBlock reports true: Submit takes as long as its callback.
func (e *Inline) MayBlock() bool { return true }

// Stats returns the counts. The caller runs every callback, and there are no workers.
func (e *Inline) Stats() Stats {
	s := e.gate.stats()
	s.CallerRan = s.Submitted
	return s
}
