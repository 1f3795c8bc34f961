package durable

import (
	"errors"
	"fmt"
	"time"

	"github.com/tickless/tickless/durable/internal/random"
	"github.com/tickless/tickless/durable/internal/worker"
	"github.com/tickless/tickless/durable/store"
)

func (a *attempt) newReport(end store.End, next store.When, err error) *worker.Report {
	text := ""
	if err != nil {
		text = fmt.Sprintf("%.*s", 2*store.MaxText, err.Error()) // the store keeps less
	}
	return &worker.Report{Attempt: &a.Attempt, Err: err, Report: store.Report{Lease: a.Lease, End: end, Next: next, Due: a.due, Text: text, Keep: a.Keep}}
}

// handBackReport returns a report that hands the task back to the store. The attempt does
// not count.
func (a *attempt) handBackReport(reason string, next store.When) *worker.Report {
	r := a.newReport(store.HandBack, next, nil)
	r.Text = reason
	return r
}

// Reasons for which a Worker hands a task back, beside those of package worker.
const (
	reasonManyMissed  = "the schedule has more missed runs than one attempt skips"
	reasonUnsupported = "the worker lacks the handler, the schedule or the time zone, or is too old for the task"
)

func (a *attempt) failedReport(err error) *worker.Report {
	var noRetryErr *NoRetryError
	var handBackErr *HandBackError
	var retryAfterErr *RetryAfterError
	isNoRetry := errors.As(err, &noRetryErr)
	switch {
	case !isNoRetry && errors.As(err, &handBackErr):
		return a.newReport(store.HandBack, clampDelay(handBackErr.After), err)
	case isNoRetry || a.delivery.Attempt >= a.delivery.MaxAttempts:
		if !a.nextRunKnown {
			_ = a.planNextRun() // if that fails, the whole task becomes a dead letter
		}
		return a.newReport(store.Failed, a.nextRun, err)
	case errors.As(err, &retryAfterErr):
		return a.newReport(store.Retry, clampDelay(retryAfterErr.After), err)
	}
	return a.newReport(store.Retry, clampDelay(a.config().retryDelay(a.w.client.random, a.delivery.Attempt, a.untilNextRun())), err)
}

// clampDelay returns d within the store's limits. If a delay is invalid, the store
// refuses all reports of the round.
func clampDelay(d time.Duration) store.When { return store.After(min(max(0, d), store.MaxDelay)) }

// untilNextRun returns the time between this run and the next, or store.MaxDelay if
// there is no next run. It limits retryDelay.
func (a *attempt) untilNextRun() time.Duration {
	if a.nextRun.IsZero() {
		return store.MaxDelay
	}
	return a.nextRun.From(0).Sub(a.due)
}

// retryDelay returns a random delay before the next attempt, at most untilNextRun.
func (c *handlerConfig) retryDelay(r *random.Source, attempt int, untilNextRun time.Duration) time.Duration {
	maxDelay := min(c.maxBackoff, untilNextRun)
	if shift := attempt - 1; shift < 62 && c.backoff <= maxDelay>>shift {
		maxDelay = c.backoff << shift
	}
	return random.N(r, maxDelay+1)
}

// unsupportedReport returns a report that hands a task that this Worker cannot run back
// to the store. The delay before the next claim grows with the time since the task was due.
func (a *attempt) unsupportedReport(now store.Time) *worker.Report {
	const minDelay, maxDelay = 100 * time.Millisecond, 30 * time.Second
	d := min(max(now.Sub(a.due)/4, minDelay), maxDelay)
	return a.handBackReport(reasonUnsupported, store.After(d/2+random.N(a.w.client.random, d/2)))
}

// notCalled changes the report on a final failure so that the attempt does not count. It is for
// attempts whose handler was not called.
func notCalled(r *worker.Report) *worker.Report {
	if r.End == store.Failed {
		r.End = store.Dropped
	}
	return r
}

// scheduleFailedReport returns the report on an attempt whose handler was not called
// because its schedule failed. If the schedule panicked, the attempt may be retried.
// Otherwise the run becomes a dead letter.
func (a *attempt) scheduleFailedReport(err error) *worker.Report {
	r := a.failedReport(err)
	if noRetryErr := (*NoRetryError)(nil); errors.As(err, &noRetryErr) {
		return notCalled(r)
	}
	return r
}

// planNextRun computes when the next run is due, unless that is known.
func (a *attempt) planNextRun() (err error) {
	if a.nextRunKnown {
		return nil
	}
	a.nextRunKnown = true // there is no run after one whose schedule fails
	defer a.recoverSchedule(&err)
	at, ok, err := a.recurrence.nextRun(a.due)
	if ok && err == nil {
		a.nextRun = store.At(at)
	}
	return err
}

// recoverSchedule turns a panic of the user's schedule into an error.
func (a *attempt) recoverSchedule(err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("durable: panic in the schedule %q: %v", a.task.Schedule, v)
	}
}

// skipToLatestRun sets a.due to the latest run that is due. It skips at most 100,000
// runs of a schedule. If there are more, moreToSkip is true, and the next attempt
// continues.
func (a *attempt) skipToLatestRun(now store.Time) (moreToSkip bool, err error) {
	if a.task.Schedule == "" {
		a.due = a.recurrence.latestRun(a.due, now)
		return false, nil
	}
	defer a.recoverSchedule(&err)
	a.nextRunKnown = true
	for range 100_000 {
		next, ok, err := a.recurrence.nextRun(a.due)
		if err != nil || !ok {
			return false, err
		}
		if next > now {
			a.nextRun = store.At(next)
			return false, nil
		}
		a.due = next
	}
	a.nextRunKnown = false
	return true, nil
}

// Settled counts the attempt, now that the store has answered the report: see [worker.Call].
func (a *attempt) Settled(r *worker.Report, receipt store.Receipt, now store.Time) {
	n, h := &a.w.counters, &a.w.otherCounters
	if a.handler != nil && !a.isUnsupported() {
		h = &a.handler.counters
	}
	warn := func(text string, args ...any) {
		a.w.client.log.Warn("durable: "+text, append([]any{"handler", a.task.Handler, "key", store.Shorten(a.task.Key)}, args...)...)
	}
	switch {
	case receipt == store.Refused:
		n.add(&n.stats.Lost, 1)
		h.add(&h.stats.Lost, 1)
	case r.End == store.Done:
		n.add(&n.stats.Done, 1)
		h.add(&h.stats.Done, 1)
		if !r.Next.IsZero() && r.Next.From(now) <= now {
			h.add(&h.stats.Overran, 1)
		}
	case r.End == store.HandBack:
		n.add(&n.stats.Released, 1)
		h.add(&h.stats.Released, 1)
	case receipt == store.Overtaken:
		n.add(&n.stats.Failed, 1)
		n.add(&n.stats.Overtaken, 1)
		h.add(&h.stats.Overtaken, 1)
		warn("an attempt failed, but is not retried: its task was cancelled or scheduled again meanwhile", "error", r.Text)
	case r.End == store.Retry:
		n.add(&n.stats.Failed, 1)
		h.add(&h.stats.Retried, 1)
	default:
		n.add(&n.stats.Failed, 1)
		n.add(&n.stats.Died, 1)
		if r.End == store.Dropped {
			h.add(&h.stats.Dropped, 1)
		} else {
			h.add(&h.stats.Died, 1)
		}
		a.w.addRecentDead(RecentDead{When: a.w.now(), Key: a.task.Key, Handler: a.task.Handler, Attempt: a.delivery.Attempt, Error: r.Text})
		warn("a task has become a dead letter", "attempt", a.delivery.Attempt, "error", r.Text)
		a.callDeadHook(r.Err)
	}
}

// GivenUp logs that the attempt's lease is given up: see [worker.Call].
func (a *attempt) GivenUp() {
	a.w.client.log.Warn("durable: a handler does not return; its lease is given up", "handler", a.task.Handler, "key", store.Shorten(a.task.Key))
}
