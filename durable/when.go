package durable

import (
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A When is a time for a task: after a delay, or at a point in time. Make one
// with [After] or [At]; the zero When is refused.
type When struct {
	kind  whenKind
	after time.Duration
	at    time.Time
}

type whenKind uint8

const (
	whenUnset whenKind = iota
	whenAfter
	whenAt
)

// After is a delay from the moment at which the store carries the command out, by the
// store's clock. Zero is due at once; a negative delay is refused with [ErrInvalid]. The
// delay is rounded up to a microsecond.
func After(d time.Duration) When { return When{kind: whenAfter, after: d} }

// At is a point in time, rounded up to a microsecond; one in the past is due at
// once. The zero time, and years from 2200 on, are refused with [ErrInvalid].
func At(t time.Time) When { return When{kind: whenAt, at: t} }

// stored returns the When as stores take it.
func (w When) stored() (store.When, error) {
	switch w.kind {
	case whenAfter:
		if w.after < 0 {
			return store.When{}, invalid("the delay %v is negative", w.after)
		}
		if w.after > store.MaxDelay {
			return store.When{}, invalid("the delay %v is out of range", w.after)
		}
		return store.After(w.after), nil
	case whenAt:
		if w.at.IsZero() {
			return store.When{}, invalid("the time to be due at is zero")
		}
		if y := w.at.UTC().Year(); y >= store.Farthest.Std().UTC().Year()+1 || y < 1 {
			return store.When{}, invalid("the time %v is out of range", w.at)
		}
		return store.At(store.TimeOf(w.at)), nil
	}
	return store.When{}, invalid("no time was given: use After or At")
}
