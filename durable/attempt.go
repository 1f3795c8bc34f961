package durable

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"runtime/pprof"
	"time"

	"github.com/tickless/tickless/durable/internal/places"
	"github.com/tickless/tickless/durable/internal/record"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timer"
)

// An attempt is a claimed task, from its claim until the store has accepted the report
// on it.
type attempt struct {
	loop          *shardLoop
	task          Task
	delivery      Delivery
	lease         store.Lease
	handler       *handler   // nil if this Worker does not have it
	dueInStore    store.Time // the due time in the store; due may be later
	recordErr     error      // why the record cannot be decoded, or nil
	recurrence    recurrence // when the task repeats
	recurrenceErr error      // why this Worker cannot compute the recurrence, or nil
	isSuspect     bool       // the run is a suspect: see package places
	keepAfterRun  bool       // the task has a Unique, a Retention or follow-ups
	following     bool       // what follows this run has a time of its own
	result        []byte     // from SetResult

	ctx       context.Context
	cancel    context.CancelCauseFunc
	hasLabels bool // ctx has goroutine labels
	// leaseTimer cancels ctx shortly before the lease ends.
	leaseTimer timer.Handle

	// The loop owns these fields until it starts the handler's goroutine. After that,
	// the goroutine owns them.

	due           store.Time // when the run is due
	nextRun       store.When // when the next run is due; zero: there is none
	nextRunKnown  bool       // the next run's time is computed
	handlerCalled bool       // the handler was called
	claimedAt     store.Time // by the store's clock

	// The loop owns these fields.

	extendedAt   time.Time // when the lease was last extended
	giveUpAt     time.Time // when to give the lease up if the handler has not returned
	mayHaveLease bool      // the Worker may still have the lease
	prev, next   *attempt  // in the loop's leaseList

	timeoutAt    time.Time // when the handler's timeout is over; set before it is called
	place        places.Place
	reportQueued bool // a report was queued; guarded by loop.mu
}

// A handler is a Handler with its options and counters.
type handler struct {
	name           string
	wrappedHandler Handler // with the middleware around it
	handlerConfig
	// labelsCtx is a context with the goroutine labels of the handler. It is nil if the
	// Worker has no name.
	labelsCtx context.Context
	counters  handlerCounters
	index     int // in Worker.handlerNames
}

func (w *Worker) newAttempt(l *shardLoop, x *store.Claimed) *attempt {
	a := &attempt{loop: l, dueInStore: x.Due, due: x.Due, isSuspect: x.Suspect, lease: store.Lease{ID: x.ID, Token: x.Token}, handler: w.handlers[x.Handler]}
	a.place = l.pool.NewPlace(a.handlerIndex())
	var generation string
	a.task, generation, a.recordErr = decodeTask(&x.Task)
	a.recurrence, a.recurrenceErr = a.task.makeRecurrence(w.client.schedules)
	a.keepAfterRun = x.Task.ActsAtEnd()
	a.following = x.Following
	a.delivery = Delivery{
		Key:         a.task.Key,
		Handler:     a.task.Handler,
		Group:       a.task.Group,
		Body:        a.task.Body,
		Headers:     a.task.Headers,
		Attempt:     x.Attempts + 1,
		MaxAttempts: a.task.MaxAttempts,
		Crashes:     x.Crashes,
		Token:       x.Token,
		Concurrency: w.config.concurrency,
		Ended:       endedOf(&x.Task),
		generation:  generation,
	}
	if a.task.Retention != (Retention{}) {
		a.delivery.result = &a.result
	}
	if a.delivery.MaxAttempts == 0 {
		a.delivery.MaxAttempts = a.config().maxAttempts
	}
	a.delivery.LastAttempt = a.delivery.Attempt >= a.delivery.MaxAttempts
	return a
}

// handlerIndex returns the handler's index in Worker.handlerNames, or -1.
func (a *attempt) handlerIndex() int {
	if a.handler == nil {
		return -1
	}
	return a.handler.index
}

func (a *attempt) config() *handlerConfig {
	if a.handler == nil {
		return &a.loop.w.config.handlerDefaults
	}
	return &a.handler.handlerConfig
}

// isUnsupported reports whether this Worker cannot run the task, but another one may.
func (a *attempt) isUnsupported() bool {
	// If the record is damaged, no Worker can run the task, even if this one lacks its
	// handler.
	return a.recordErr == nil && (a.handler == nil || a.recurrenceErr != nil) || errors.Is(a.recordErr, record.ErrNewer)
}

func (a *attempt) timeout() time.Duration {
	if a.task.Timeout > 0 {
		return a.task.Timeout
	}
	return a.config().timeout
}

func (a *attempt) makeContext() {
	ctx := a.loop.w.handlerCtx
	if a.handler != nil && a.handler.labelsCtx != nil {
		ctx, a.hasLabels = a.handler.labelsCtx, true
	}
	a.ctx, a.cancel = context.WithCancelCause(ctx)
}

// mayCallSchedule reports whether prepareCall may call the task's schedule. A schedule
// may take any time, so the handler's goroutine then calls prepareCall, not the loop.
func (a *attempt) mayCallSchedule() bool { return a.task.Schedule != "" && !a.isUnsupported() }

// prepareCall sets the Delivery's Due. It returns nil if the handler may be called, and
// otherwise the report on the attempt. now is the store's time.
func (a *attempt) prepareCall(now store.Time) (earlyReport *report) {
	defer func() { a.delivery.Due = a.due.Std() }()
	switch {
	case a.isUnsupported():
		// The handler exists, but not the schedule or the time zone: log that.
		if a.handler != nil && a.recurrenceErr != nil {
			a.loop.w.logError(fmt.Errorf("task %q: %w", printableKey(a.task.Key), a.recurrenceErr))
		}
		return a.unsupportedReport(now)
	case a.recordErr != nil:
		return a.failedReport(NoRetry(a.recordErr)).markNotCalled()
	}
	var exhaustedErr error
	switch {
	case a.delivery.Crashes >= a.loop.w.config.maxCrashes:
		// Too many attempts of this run have crashed, so the handler is not called. This
		// is a repeating task: the store itself makes any other task a dead letter.
		exhaustedErr = errors.New(store.TextPoison)
	case a.delivery.Attempt > a.delivery.MaxAttempts:
		exhaustedErr = errors.New("durable: the worker of the last attempt crashed")
	}
	// Skip missed runs, unless the report on an earlier attempt has told the store that
	// they were skipped.
	if a.task.Missed == LatestMissed && !a.following && a.delivery.Attempt == a.delivery.Crashes+1 {
		moreToSkip, err := a.skipToLatestRun(now)
		switch {
		case exhaustedErr != nil:
		case err != nil:
			return a.scheduleFailedReport(err)
		case moreToSkip:
			return a.handBackReport(reasonManyMissed)
		}
	}
	if exhaustedErr != nil {
		return a.failedReport(NoRetry(exhaustedErr)).markNotCalled()
	}
	if a.task.Missed == DeadMissed && a.delivery.Attempt == 1 {
		if late := now.Sub(a.due); late > a.task.MissedAfter {
			return a.failedReport(NoRetry(fmt.Errorf("durable: missed: %v late", late))).markNotCalled()
		}
	}
	return nil
}

// run runs the attempt, on a goroutine of its own.
func (a *attempt) run() {
	if a.hasLabels {
		pprof.SetGoroutineLabels(a.ctx)
	}
	var r *report
	// Deferred, because a handler may call runtime.Goexit.
	defer func() {
		if r == nil {
			r = a.failedReport(errors.New("durable: the handler ended its goroutine"))
		}
		a.countLateness(r)
		a.leaseTimer.Stop()
		a.cancel(nil)
		a.loop.reportAndReleasePlace(r)
	}()
	r = a.runHandler()
}

// runHandler calls the handler and returns the report on the attempt.
func (a *attempt) runHandler() (r *report) {
	defer func() {
		if v := recover(); v != nil {
			a.loop.w.client.log.Error("durable: panic in a handler", "handler", a.task.Handler,
				"key", printableKey(a.task.Key), "panic", v, "stack", string(debug.Stack()))
			r = a.failedReport(fmt.Errorf("panic: %v", v))
		}
	}()
	if a.mayCallSchedule() {
		if earlyReport := a.prepareCall(a.claimedAt); earlyReport != nil {
			return earlyReport
		}
	}
	// Compute the next run's time first: if that fails, the handler must not run.
	if err := a.planNextRun(); err != nil {
		return a.scheduleFailedReport(err)
	}
	if cause := context.Cause(a.ctx); errors.Is(cause, ErrClosed) || errors.Is(cause, ErrLeaseLost) {
		reason := reasonLeaseEnds // the schedule took too long
		if errors.Is(cause, ErrClosed) {
			reason = reasonShutdown
		}
		return a.handBackReport(reason)
	}
	ctx, cancel := a.loop.w.withTimeout(a.ctx, a.timeout())
	defer cancel()
	a.timeoutAt = a.loop.w.now().Add(a.timeout())
	defer context.AfterFunc(ctx, a.watchForHang)()
	err := a.callHandler(ctx)
	if err == nil {
		return a.doneReport()
	}
	if errors.Is(context.Cause(ctx), ErrClosed) {
		return a.handBackReport(reasonShutdown)
	}
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) && !errors.Is(err, cause) {
		err = fmt.Errorf("%w (%w)", err, cause) // explain "context canceled"
	}
	return a.failedReport(err)
}

// withTimeout returns a context that ends after d with the cause ErrTimeout, by the
// Worker's clock.
func (w *Worker) withTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if !w.hasVirtualClock { // package context uses the system's clock
		return context.WithTimeoutCause(parent, d, ErrTimeout)
	}
	ctx, cancel := context.WithCancelCause(parent)
	t := w.timers.AfterFunc(d, func() { cancel(ErrTimeout) })
	return ctx, func() { t.Stop(); cancel(nil) }
}

// callHandler calls the handler, and counts the call.
func (a *attempt) callHandler(ctx context.Context) error {
	a.handlerCalled = true
	a.handler.counters.running.Add(1)
	defer a.countHandlerReturn(a.loop.w.now())
	return a.handler.wrappedHandler(ctx, a.delivery)
}
