package durable

import (
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A When is a time for a task: after a delay, at a point in time, or at the next run of a
// task that repeats. Make one with [After], [At] or [Next]; the zero When is refused.
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
	whenNext
)

// After is a delay from the moment at which the store carries the command out, by the
// store's clock. Zero is due at once; a negative delay is refused with [ErrInvalid]. The
// delay is rounded up to a microsecond.
func After(d time.Duration) When { return When{kind: whenAfter, after: d} }

// At is a point in time, rounded up to a microsecond; one in the past is due at
// once. The zero time, and years from 2200 on, are refused with [ErrInvalid].
func At(t time.Time) When { return When{kind: whenAt, at: t} }

// Next is the first moment from now on, by the store's clock, at which a task with a Cron,
// an Every or a Schedule is due, if it has one by its Start and End: else it is refused with
// [ErrInvalid]. With an Every and no Start that is after one period.
func Next() When { return When{kind: whenNext} }

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
	if w.kind == whenNext {
		return store.When{}, invalid("Next is for Schedule alone")
	}
	return store.When{}, invalid("no time was given: use After, At or Next")
}
