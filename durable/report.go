package durable

import (
	"errors"
	"fmt"
	"time"

	"github.com/tickless/tickless/durable/internal/random"
	"github.com/tickless/tickless/durable/internal/record"
	"github.com/tickless/tickless/durable/store"
)

// A report is what a loop tells the store about an attempt.
type report struct {
	attempt *attempt
	end     store.End  // how the attempt ended
	due     store.Time // when this run was due
	next    store.When // when the task is due next
	text    string     // the beginning of the error's text
	err     error      // the full error
}

func (r *report) storeReport() store.Report {
	x := store.Report{Lease: r.attempt.lease, End: r.end, Next: r.next, Due: r.due, Text: r.text, Keep: r.attempt.keepAfterRun}
	if (r.end == store.Done || r.end == store.Failed) && r.attempt.delivery.result != nil {
		x.Result = record.Result(r.attempt.claimedAt, r.attempt.result)
	}
	return x
}

func (a *attempt) doneReport() *report {
	return &report{attempt: a, end: store.Done, due: a.due, next: a.nextRun}
}

// handBackReport returns a report that hands the task back to the store. The attempt does
// not count.
func (a *attempt) handBackReport(reason string) *report {
	return &report{attempt: a, end: store.HandBack, due: a.due, text: reason}
}

// Reasons for which a Worker hands a task back.
const (
	reasonShutdown    = "the worker shut down"
	reasonLeaseEnds   = "the lease was about to end before the handler began"
	reasonManyMissed  = "the schedule has more missed runs than one attempt skips"
	reasonUnsupported = "the worker lacks the handler, the schedule or the time zone, or is too old for the task"
)

func (a *attempt) failedReport(err error) *report {
	r := &report{attempt: a, due: a.due, text: truncatedText(err), err: err}
	var noRetryErr *NoRetryError
	var handBackErr *HandBackError
	var retryAfterErr *RetryAfterError
	isNoRetry := errors.As(err, &noRetryErr)
	switch {
	case !isNoRetry && errors.As(err, &handBackErr):
		r.end, r.next = store.HandBack, clampDelay(handBackErr.After)
	case isNoRetry || a.delivery.Attempt >= a.delivery.MaxAttempts:
		r.end = store.Failed
		if !a.nextRunKnown {
			_ = a.planNextRun() // if that fails, the whole task becomes a dead letter
		}
		r.next = a.nextRun
	case errors.As(err, &retryAfterErr):
		r.end, r.next = store.Retry, clampDelay(retryAfterErr.After)
	default:
		r.end, r.next = store.Retry, clampDelay(a.config().retryDelay(a.loop.w.client.random, a.delivery.Attempt, a.untilNextRun()))
	}
	return r
}

// truncatedText returns the beginning of an error's text, up to twice as much as the
// store keeps.
func truncatedText(err error) string {
	if err == nil {
		return ""
	}
	s := err.Error()
	if len(s) > 2*store.MaxText {
		s = s[:2*store.MaxText]
	}
	return s
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
func (a *attempt) unsupportedReport(now store.Time) *report {
	const minDelay, maxDelay = 100 * time.Millisecond, 30 * time.Second
	d := min(max(now.Sub(a.due)/4, minDelay), maxDelay)
	return &report{attempt: a, end: store.HandBack, due: a.due, text: reasonUnsupported, next: store.After(d/2 + random.N(a.loop.w.client.random, d/2))}
}

// markNotCalled changes the report on a final failure so that the attempt does not
// count. It is for attempts whose handler was not called.
func (r *report) markNotCalled() *report {
	if r.end == store.Failed {
		r.end = store.Dropped
	}
	return r
}

// scheduleFailedReport returns the report on an attempt whose handler was not called
// because its schedule failed. If the schedule panicked, the attempt may be retried.
// Otherwise the run becomes a dead letter.
func (a *attempt) scheduleFailedReport(err error) *report {
	r := a.failedReport(err)
	if noRetryErr := (*NoRetryError)(nil); errors.As(err, &noRetryErr) {
		return r.markNotCalled()
	}
	return r
}

// planNextRun computes when the next run is due, unless that is known.
func (a *attempt) planNextRun() error {
	if a.nextRunKnown {
		return nil
	}
	return a.callSafely(func() error {
		at, ok, err := a.recurrence.nextRun(a.due)
		if err == nil {
			a.recordNextRun(at, ok)
		}
		return err
	})
}

// recordNextRun records when the next run is due. ok is false if there is none.
func (a *attempt) recordNextRun(at store.Time, ok bool) {
	if a.nextRunKnown = true; ok {
		a.nextRun = store.At(at)
	}
}

// callSafely calls f. If the task names a schedule, f may call the user's code, so it runs
// on a new goroutine: a panic or runtime.Goexit there becomes an error.
func (a *attempt) callSafely(f func() error) error {
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

// skipToLatestRun sets a.due to the latest run that is due. It skips at most 100,000
// runs of a schedule. If there are more, moreToSkip is true, and the next attempt
// continues.
func (a *attempt) skipToLatestRun(now store.Time) (moreToSkip bool, err error) {
	if a.task.Schedule == "" {
		a.due = a.recurrence.latestRun(a.due, now)
		return false, nil
	}
	err = a.callSafely(func() error {
		for range 100_000 {
			next, ok, err := a.recurrence.nextRun(a.due)
			if err != nil {
				return err
			}
			if !ok || next > now {
				a.recordNextRun(next, ok)
				return nil
			}
			a.due = next
		}
		moreToSkip = true
		return nil
	})
	return moreToSkip, err
}
