package executor

// An Inline runs each callback on the goroutine that submits it, before Submit returns.
// It suits tests and single-threaded event loops. Make one with [NewInline].
//
// A callback that blocks also blocks its submitter. A callback that calls runtime.Goexit
// ends the submitting goroutine. The callbacks after it in a batch are not accepted.
type Inline struct {
	gate
}

var _ Batcher = (*Inline)(nil)

// NewInline returns an executor that runs each callback on its submitter's goroutine.
func NewInline(opts ...Option) *Inline {
	e := new(Inline)
	e.init(newConfig("NewInline", opts))
	return e
}

// Submit runs f and returns nil, or returns [ErrClosed].
func (e *Inline) Submit(f func()) error {
	if !e.beginCallback() {
		return e.refuseCallbacks(1)
	}
	e.runCallback(f)
	return nil
}

// SubmitBatch runs fs in order. If a callback closes e, SubmitBatch refuses the callbacks
// after it with [ErrClosed].
func (e *Inline) SubmitBatch(fs []func()) (accepted int, err error) {
	for i, f := range fs {
		if !e.beginCallback() {
			return i, e.refuseCallbacks(len(fs) - i)
		}
		e.runCallback(f)
	}
	return len(fs), nil
}

// Stats returns the counts. Workers and PeakWorkers are zero: an Inline has no workers.
func (e *Inline) Stats() Stats {
	s := e.stats()
	s.PeakWorkers = 0
	return s
}
