package durable

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"runtime/pprof"
	"time"

	"github.com/tickless/tickless/durable/internal/record"
	"github.com/tickless/tickless/durable/internal/worker"
	"github.com/tickless/tickless/durable/store"
)

// An attempt is what a Worker makes of a claimed task. Its Loop owns the embedded
// [worker.Attempt]. The goroutine of the loop makes the rest; from its start on, the handler's
// goroutine owns it.
type attempt struct {
	worker.Attempt
	w             *Worker
	task          Task
	delivery      Delivery
	handler       *handler   // nil if this Worker does not have it
	recordErr     error      // why the record cannot be decoded, or nil
	recurrence    recurrence // when the task repeats
	recurrenceErr error      // why this Worker cannot compute the recurrence, or nil
	following     bool       // what follows this run has a time of its own
	result        []byte     // from SetResult
	ctx           context.Context

	due           store.Time // when the run is due; may be later than in the store
	nextRun       store.When // when the next run is due; zero: there is none
	nextRunKnown  bool       // nextRun is computed, or cannot be
	handlerCalled bool       // the handler was called
	claimedAt     store.Time // by the store's clock
	timeoutAt     time.Time  // when the handler's timeout is over; set before it is called
}

// A handler is a Handler with its options and counters.
type handler struct {
	name           string
	wrappedHandler Handler // with the middleware around it
	handlerConfig
	// ctx is the parent of its contexts. If the Worker has a name, it has goroutine labels.
	ctx      context.Context
	counters counters[HandlerStats]
	index    int // in Worker.handlerNames
}

// newAttempt returns the attempt at a claimed task: see [worker.Run.Claimed].
func (w *Worker) newAttempt(x *store.Claimed, now store.Time) (*worker.Attempt, *worker.Report) {
	a := &attempt{w: w, due: x.Due, claimedAt: now, handler: w.handlers[x.Handler], following: x.Following}
	var generation string
	a.task, generation, a.recordErr = decodeTask(&x.Task)
	a.recurrence, a.recurrenceErr = a.task.makeRecurrence(w.client.schedules)
	a.delivery = Delivery{
		Key:         a.task.Key,
		Handler:     a.task.Handler,
		Group:       a.task.Group,
		Body:        a.task.Body,
		Headers:     a.task.Headers,
		Attempt:     x.Attempts + 1,
		MaxAttempts: cmp.Or(a.task.MaxAttempts, a.config().maxAttempts),
		Timeout:     a.task.Timeout,
		Crashes:     x.Crashes,
		Token:       x.Token,
		Concurrency: w.config.concurrency,
		Ended:       endedOf(&x.Task),
		generation:  generation,
	}
	a.delivery.LastAttempt = a.delivery.Attempt >= a.delivery.MaxAttempts
	if a.task.Retention != (Retention{}) {
		a.delivery.result = &a.result
	}
	a.Attempt = worker.Attempt{Call: a, Lease: store.Lease{ID: x.ID, Token: x.Token}, Due: x.Due, Handler: -1, Timeout: cmp.Or(a.task.Timeout, a.config().timeout),
		IsSuspect: x.Suspect, IsLastSuspect: x.Crashes+1 >= w.config.maxCrashes, Keep: x.Task.ActsAtEnd()}
	ctx := w.handlerCtx
	if a.handler != nil {
		a.Handler, ctx = a.handler.index, a.handler.ctx
	}
	a.Place = w.places.Load().NewPlace(a.Handler)
	a.ctx, a.Cancel = context.WithCancelCause(ctx)
	a.countClaim()
	if a.mayCallSchedule() {
		return &a.Attempt, nil
	}
	return &a.Attempt, a.prepareCall(now)
}

func (a *attempt) config() *handlerConfig {
	if a.handler == nil {
		return &a.w.config.handlerDefaults
	}
	return &a.handler.handlerConfig
}

// isUnsupported reports whether this Worker cannot run the task, but another one may.
func (a *attempt) isUnsupported() bool {
	// If the record is damaged, no Worker can run the task, even if this one lacks its
	// handler.
	return a.recordErr == nil && (a.handler == nil || a.recurrenceErr != nil) || errors.Is(a.recordErr, record.ErrNewer)
}

// mayCallSchedule reports whether prepareCall may call the task's schedule. A schedule
// may take any time, so the handler's goroutine then calls prepareCall, not the loop.
func (a *attempt) mayCallSchedule() bool { return a.task.Schedule != "" && !a.isUnsupported() }

// prepareCall sets the Delivery's Due. It returns nil if the handler may be called, and
// otherwise the report on the attempt. now is the store's time.
func (a *attempt) prepareCall(now store.Time) (earlyReport *worker.Report) {
	defer func() { a.delivery.Due = a.due.Std() }()
	switch {
	case a.isUnsupported():
		// The handler exists, but not the schedule or the time zone: log that.
		if a.handler != nil && a.recurrenceErr != nil {
			a.w.logError(fmt.Errorf("task %q: %w", store.Shorten(a.task.Key), a.recurrenceErr))
		}
		return a.unsupportedReport(now)
	case a.recordErr != nil:
		return notCalled(a.failedReport(NoRetry(a.recordErr)))
	}
	var exhaustedErr error
	switch {
	case a.delivery.Crashes >= a.w.config.maxCrashes:
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
			return a.handBackReport(reasonManyMissed, store.When{})
		}
	}
	if exhaustedErr != nil {
		return notCalled(a.failedReport(NoRetry(exhaustedErr)))
	}
	if a.task.Missed == DeadMissed && a.delivery.Attempt == 1 {
		if late := now.Sub(a.due); late > a.task.MissedAfter {
			return notCalled(a.failedReport(NoRetry(fmt.Errorf("durable: missed: %v late", late))))
		}
	}
	return nil
}

// Run runs the attempt, on a goroutine of its own.
func (a *attempt) Run() {
	if a.w.config.name != "" {
		pprof.SetGoroutineLabels(a.ctx)
	}
	var r *worker.Report
	// Deferred, because a handler or a schedule may call runtime.Goexit.
	defer func() {
		switch {
		case r != nil:
		case a.handlerCalled:
			r = a.failedReport(errors.New("durable: the handler ended its goroutine"))
		default:
			r = a.failedReport(fmt.Errorf("durable: the schedule %q ended its goroutine", a.task.Schedule))
		}
		if (r.End == store.Done || r.End == store.Failed) && a.delivery.result != nil {
			r.Result = record.Result(a.claimedAt, a.result)
		}
		a.countLateness(r)
		a.End(r, a.handlerCalled)
	}()
	r = a.runHandler()
}

// runHandler calls the handler and returns the report on the attempt.
func (a *attempt) runHandler() (r *worker.Report) {
	defer func() {
		if v := recover(); v != nil {
			a.w.client.log.Error("durable: panic in a handler", "handler", a.task.Handler,
				"key", store.Shorten(a.task.Key), "panic", v, "stack", string(debug.Stack()))
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
		reason := worker.ReasonLeaseEnds // the schedule took too long
		if errors.Is(cause, ErrClosed) {
			reason = worker.ReasonShutdown
		}
		return a.handBackReport(reason, store.When{})
	}
	ctx, cancel := a.w.withTimeout(a.ctx, a.Timeout)
	defer cancel()
	a.timeoutAt = a.w.now().Add(a.Timeout)
	defer context.AfterFunc(ctx, a.watchForHang)()
	err := a.callHandler(ctx)
	if err == nil {
		return a.newReport(store.Done, a.nextRun, nil)
	}
	if errors.Is(context.Cause(ctx), ErrClosed) {
		return a.handBackReport(worker.ReasonShutdown, store.When{})
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

func (a *attempt) callHandler(ctx context.Context) error {
	a.handlerCalled = true
	n := &a.handler.counters
	n.mu.Lock()
	n.stats.Running++
	n.mu.Unlock()
	defer a.countHandlerReturn(a.w.now())
	return a.handler.wrappedHandler(ctx, a.delivery)
}

// watchForHang runs when the handler's context has ended, whatever ended it. It logs a handler
// that does not return, once.
func (a *attempt) watchForHang() {
	w := a.w
	a.Place.Watch(a.timeoutAt.Sub(w.now()), a.Timeout, func() {
		w.client.log.Error("durable: a handler does not return after its timeout", "handler", a.task.Handler,
			"key", store.Shorten(a.task.Key), "timeout", a.Timeout, "stack", a.stack())
	})
}

// stack returns the stack of the attempt's goroutine. The runtime can only return all
// stacks, so stack looks for the one with a call of the attempt's method runHandler.
func (a *attempt) stack() string {
	var stacks bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&stacks, 2) // a Buffer does not fail
	frame := fmt.Appendf(nil, "durable.(*attempt).runHandler(%p", a)
	for goroutine := range bytes.SplitSeq(stacks.Bytes(), []byte("\n\n")) {
		if bytes.Contains(goroutine, frame) {
			return string(goroutine)
		}
	}
	return "(not found)"
}
