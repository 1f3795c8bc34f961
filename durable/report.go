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
	next store.When
	text string
}

func (r *report) stored() store.Report {
	return store.Report{Hold: r.a.hold, End: r.end, Next: r.next, Due: r.a.due, Text: r.text}
}

// done is the report of a run that went well.
func (a *attempt) done() *report {
	next, err := a.following()
	if err != nil {
		return a.failed(err)
	}
	return &report{a: a, end: store.Done, next: next}
}

// failed is the report of an attempt that failed.
func (a *attempt) failed(err error) *report {
	r := &report{a: a, text: cut(err)}
	var never *NoRetryError
	var back *HandBackError
	var after *RetryAfterError
	dead := errors.As(err, &never)
	switch {
	case !dead && errors.As(err, &back):
		r.end, r.next = store.HandBack, delay(back.After)
	case dead || a.d.Attempt >= a.d.MaxAttempts:
		r.end = store.Failed
		// A schedule that panics or is unknown makes the task itself the dead letter.
		r.next, _ = a.following()
	case errors.As(err, &after):
		r.end, r.next = store.Retry, delay(after.After)
	default:
		r.end, r.next = store.Retry, delay(a.config().delay(a.d.Attempt))
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

// delay is the time between an attempt and the next.
func (c *handlerConfig) delay(attempt int) time.Duration {
	limit := c.cap
	if shift := attempt - 1; shift < 62 && c.backoff <= c.cap>>shift {
		limit = c.backoff << shift
	}
	return time.Duration(rand.Int64N(int64(limit) + 1))
}

// left is the report on a task that this worker cannot read. Another one shall look at
// it, soon at first, and the later the longer nobody could.
func (a *attempt) left(now store.Time) *report {
	const soonest, latest = 100 * time.Millisecond, 30 * time.Second
	d := min(max(now.Sub(a.due)/4, soonest), latest)
	return &report{a: a, end: store.HandBack, next: store.After(d/2 + rand.N(d/2))}
}

// following returns when the run after this one is due, or nothing if there is none.
func (a *attempt) following() (next store.When, err error) {
	defer func() {
		if v := recover(); v != nil { // in a Schedule
			next, err = store.When{}, NoRetry(fmt.Errorf("durable: panic in the schedule %q: %v", a.task.Schedule, v))
		}
	}()
	at, ok := a.after(a.due)
	if !ok {
		return store.When{}, nil
	}
	return store.At(at), nil
}

// after returns when the run is due that follows one which was due at a time.
func (a *attempt) after(due store.Time) (store.Time, bool) {
	switch {
	case a.task.Every > 0:
		return due.Add(a.task.Every), true
	case a.task.Schedule == "":
		return 0, false
	}
	next := a.loop.w.config.schedules[a.task.Schedule].Next(due.Std())
	if next.IsZero() {
		return 0, false
	}
	// One that does not go on would never end.
	return min(max(store.TimeOf(next), due+1), store.Farthest), true
}

// skip makes the latest run of a repeating task, of those that are due, this one.
func (a *attempt) skip(now store.Time) {
	if a.task.Every > 0 {
		every := store.Time(a.task.Every.Microseconds())
		a.due += max(0, now-a.due) / every * every
		return
	}
	// A schedule that was missed for years by the second may take several claims.
	for range 100_000 {
		next, ok := a.after(a.due)
		if !ok || next > now {
			return
		}
		a.due = next
	}
}
