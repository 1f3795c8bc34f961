package executor

// An Inline runs each callback on the goroutine that submits it, before Submit
// returns. It suits deterministic tests, single-threaded event loops, and callbacks
// so short that any hand-over would cost more. Make one with [NewInline].
//
// A callback that blocks blocks its submitter. A callback that submits another runs
// that inside itself. runtime.Goexit ends the submitting goroutine, as it would in a
// plain call: a t.FailNow in a callback ends its test, and the rest of a batch is
// then neither run nor accepted.
type Inline struct {
	gate
}

var _ Batcher = (*Inline)(nil)

// NewInline returns an executor that runs callbacks on their submitters.
func NewInline(opts ...Option) *Inline {
	e := new(Inline)
	e.init(newConfig("NewInline", opts))
	return e
}

// Submit runs f and returns nil, or returns [ErrClosed].
func (e *Inline) Submit(f func()) error {
	if !e.enter() {
		return e.refuse(1)
	}
	e.run(f)
	return nil
}

// SubmitBatch runs fs in order. It stops with [ErrClosed] when e is closed in the middle.
func (e *Inline) SubmitBatch(fs []func()) (accepted int, err error) {
	for i, f := range fs {
		if !e.enter() {
			return i, e.refuse(len(fs) - i)
		}
		e.run(f)
	}
	return len(fs), nil
}

// Stats returns the counts. The caller runs every callback, and there are no workers.
func (e *Inline) Stats() Stats {
	s := e.stats()
	s.PeakWorkers = 0
	return s
}
