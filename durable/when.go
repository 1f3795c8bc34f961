package durable

import (
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A When is the time for a task: a delay, a point in time, or the next run of a
// repeating task. Make one with [After], [At] or [Next]. The zero When is invalid.
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

// After returns a delay from when the store carries out the command. It is rounded up
// to a microsecond. Zero means due immediately. A negative delay is an [ErrInvalid].
func After(d time.Duration) When { return When{kind: whenAfter, after: d} }

// At returns a point in time, rounded up to a microsecond. If it has passed, the task
// is due immediately. The zero time and years after 2199 are an [ErrInvalid].
func At(t time.Time) When { return When{kind: whenAt, at: t} }

// Next returns the time of a repeating task's next run, by the store's clock. It is only
// for [Client.Schedule], which says what a change does and what happens after the task's
// End. With Every and no Start, the first run of a new task or period is one period from
// now.
func Next() When { return When{kind: whenNext} }

func (w When) storeWhen() (store.When, error) {
	switch w.kind {
	case whenAfter:
		if w.after < 0 {
			return store.When{}, invalidError("the delay %v is negative", w.after)
		}
		if w.after > store.MaxDelay {
			return store.When{}, invalidError("the delay is %v, more than %v", w.after, store.MaxDelay)
		}
		return store.After(w.after), nil
	case whenAt:
		if w.at.IsZero() {
			return store.When{}, invalidError("the time is zero")
		}
		if y := w.at.UTC().Year(); y >= store.Farthest.Std().UTC().Year()+1 || y < 1 {
			return store.When{}, invalidError("the time %v is not in the years 1 to 2199", w.at)
		}
		return store.At(store.TimeOf(w.at)), nil
	}
	if w.kind == whenNext {
		return store.When{}, invalidError("Next is only for Schedule")
	}
	return store.When{}, invalidError("no time was given: use After, At or Next")
}
