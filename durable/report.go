package durable

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A report is what the store is told about an attempt.
type report struct {
	a    *attempt
	end  store.End
	due  store.Time // when this run was due
	next store.When
	text string
	err  error // what text is cut from
}

func (r *report) stored() store.Report {
	x := store.Report{Lease: r.a.hold, End: r.end, Next: r.next, Due: r.due, Text: r.text, Keep: r.a.keeps}
	if r.end == store.Done && r.a.d.result != nil {
		x.Result = fmt.Appendf(nil, "%0*d%s", beganSize, r.a.claimed, r.a.result)
	}
	return x
}

// done is the report of a run that went well.
func (a *attempt) done() *report { return &report{a: a, end: store.Done, due: a.due, next: a.after} }

// handBack is the report of an attempt that does not count.
func (a *attempt) handBack() *report { return &report{a: a, end: store.HandBack, due: a.due} }

// failed is the report of an attempt that failed.
func (a *attempt) failed(err error) *report {
	r := &report{a: a, due: a.due, text: cut(err), err: err}
	var never *NoRetryError
	var back *HandBackError
	var after *RetryAfterError
	dead := errors.As(err, &never)
	switch {
	case !dead && errors.As(err, &back):
		r.end, r.next = store.HandBack, delay(back.After)
	case dead || a.d.Attempt >= a.d.MaxAttempts:
		r.end = store.Failed
		if !a.planned {
			_ = a.plan() // without a next time the task itself is the dead letter
		}
		r.next = a.after
	case errors.As(err, &after):
		r.end, r.next = store.Retry, delay(after.After)
	default:
		r.end, r.next = store.Retry, delay(a.config().delay(a.d.Attempt, a.period()))
	}
	return r
}

// cut returns what is kept of an error, and a little more.
func cut(err error) string {
	if err == nil {
		return ""
	}
	s := err.Error()
	if len(s) > 2*store.MaxText {
		s = s[:2*store.MaxText]
	}
	return strings.ToValidUTF8(s, "")
}

// delay is a delay as stores take it: what a handler says must not spoil the reports of
// others that are sent with it.
func delay(d time.Duration) store.When { return store.After(min(max(0, d), store.MaxDelay)) }

// period is the time until the run after this one, so that a task which repeats is back soon
// after an outage; the longest time of all if it does not repeat.
func (a *attempt) period() time.Duration {
	if a.after.IsZero() {
		return store.MaxDelay
	}
	return a.after.From(0).Sub(a.due)
}

// delay is the time between an attempt and the next.
func (c *handlerConfig) delay(attempt int, most time.Duration) time.Duration {
	limit := min(c.cap, most)
	if shift := attempt - 1; shift < 62 && c.backoff <= limit>>shift {
		limit = c.backoff << shift
	}
	return time.Duration(rand.Int64N(int64(limit) + 1))
}

// left is the report on a task that this worker cannot read. Another one shall look at
// it, soon at first, and the later the longer nobody could.
func (a *attempt) left(now store.Time) *report {
	const soonest, latest = 100 * time.Millisecond, 30 * time.Second
	d := min(max(now.Sub(a.due)/4, soonest), latest)
	return &report{a: a, end: store.HandBack, due: a.due, next: store.After(d/2 + rand.N(d/2))}
}

// unrun says of a failure for good that its attempt does not count: the handler was
// not called.
func (r *report) unrun() *report {
	if r.end == store.Failed {
		r.end = store.Dropped
	}
	return r
}

// unplanned is the report of an attempt whose handler was not called, since its schedule did
// not say when the next run is due. One that panics may do better another time: that is an
// attempt, as one whose handler panics.
func (a *attempt) unplanned(err error) *report {
	r := a.failed(err)
	if never := (*NoRetryError)(nil); errors.As(err, &never) {
		return r.unrun()
	}
	return r
}

// plan finds out when the run after this one is due, unless skip has.
func (a *attempt) plan() error {
	if a.planned {
		return nil
	}
	return a.apart(func() error {
		at, ok, err := a.recurs.next(a.due)
		if err == nil {
			a.follows(at, ok)
		}
		return err
	})
}

// follows says when the run after this one is due, if there is one.
func (a *attempt) follows(at store.Time, ok bool) {
	if a.planned = true; ok {
		a.after = store.At(at)
	}
}

// apart calls f, which may ask the task's schedule, in a goroutine of its own: what ends
// that, by a panic or by runtime.Goexit, ends no handler's place.
func (a *attempt) apart(f func() error) error {
	if a.task.Schedule == "" {
		return f()
	}
	err := fmt.Errorf("durable: the schedule %q ended its goroutine", a.task.Schedule)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("durable: panic in the schedule %q: %v", a.task.Schedule, v)
			}
		}()
		err = f()
	}()
	<-done
	return err
}

// skip makes the latest run of a repeating task, of those that are due, this one. It
// reports more if it has come to a later one but not to the latest: a schedule that was
// missed for days by the second takes several claims.
func (a *attempt) skip(now store.Time) (more bool, err error) {
	if a.task.Schedule == "" {
		a.due = a.recurs.latest(a.due, now)
		return false, nil
	}
	err = a.apart(func() error {
		for range 100_000 {
			next, ok, err := a.recurs.next(a.due)
			if err != nil {
				return err
			}
			if !ok || next > now {
				a.follows(next, ok)
				return nil
			}
			a.due = next
		}
		more = true
		return nil
	})
	return more, err
}
