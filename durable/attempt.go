package durable

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"runtime/pprof"
	"time"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timer"
)

// An attempt is a claimed task, from its claim until the store has accepted the report
// on it.
type attempt struct {
	loop      *loop
	task      Task
	d         Delivery
	lease     store.Lease
	handler   *handler   // nil if this Worker does not have it
	storedDue store.Time // Due as the store has it
	recordErr error      // why the record cannot be decoded, or nil
	recurs    recurrence // when the task repeats
	recurErr  error      // why this Worker cannot compute that, or nil
	keeps     bool       // the task has a Unique or a Retention
	result    []byte     // from SetResult

	ctx      context.Context
	cancel   context.CancelCauseFunc
	labelled bool // ctx has goroutine labels
	// leaseTimer cancels ctx shortly before the lease ends.
	leaseTimer timer.Handle

	// The loop owns these fields until it starts the handler's goroutine. After that,
	// the goroutine owns them.

	due     store.Time // when the run is due
	after   store.When // when the next run is due; zero: there is none
	planned bool       // the next run's time is computed
	called  bool       // the handler was called
	claimed store.Time

	// The loop owns these fields.

	renewed    time.Time // when the lease was last extended
	hangs      time.Time // when to give the lease up if the handler has not returned
	open       bool      // the Worker may still have the lease
	prev, next *attempt  // in the loop's leaseList

	hung     bool // the lease was given up; guarded by places.mu
	reported bool // a report was queued; guarded by loop.mu
}

// A handler is a Handler with its options and counters.
type handler struct {
	name string
	run  Handler // with the middleware around it
	handlerConfig
	// labels is a context with the goroutine labels of the handler. It is nil if the
	// Worker has no name.
	labels context.Context
	n      handlerCounters
	use
}

func (w *Worker) newAttempt(l *loop, x *store.Claimed) *attempt {
	a := &attempt{loop: l, storedDue: x.Due, due: x.Due, lease: store.Lease{ID: x.ID, Token: x.Token}, handler: w.handlers[x.Handler]}
	var generation string
	a.task, generation, a.recordErr = decode(&x.Task)
	a.recurs, a.recurErr = a.task.recurrence(w.client.schedules)
	_, a.keeps = x.Task.Keeps()
	a.d = Delivery{
		Key:         a.task.Key,
		Handler:     a.task.Handler,
		Body:        a.task.Body,
		Headers:     a.task.Headers,
		Attempt:     x.Attempts + 1,
		MaxAttempts: a.task.MaxAttempts,
		Crashes:     x.Crashes,
		Token:       x.Token,
		Concurrency: w.config.concurrency,
		gen:         generation,
	}
	if a.task.Retention != (Retention{}) {
		a.d.result = &a.result
	}
	if a.d.MaxAttempts == 0 {
		a.d.MaxAttempts = a.config().attempts
	}
	return a
}

func (a *attempt) config() *handlerConfig {
	if a.handler == nil {
		return &a.loop.w.config.handler
	}
	return &a.handler.handlerConfig
}

// unsupported reports whether this Worker cannot run the task, but another one may.
func (a *attempt) unknown() bool {
	// If the record is damaged, the handler's name may be damaged too.
	return a.recordErr == nil && (a.handler == nil || a.recurErr != nil) || errors.Is(a.recordErr, errNewer)
}

func (a *attempt) timeout() time.Duration {
	if a.task.Timeout > 0 {
		return a.task.Timeout
	}
	return a.config().timeout
}

func (a *attempt) begin() {
	ctx := a.loop.w.ctx
	if a.handler != nil && a.handler.labels != nil {
		ctx, a.labelled = a.handler.labels, true
	}
	a.ctx, a.cancel = context.WithCancelCause(ctx)
}

// mayCallSchedule reports whether prepare may call the task's schedule, which may take
// any time.
func (a *attempt) asks() bool { return a.task.Schedule != "" && !a.unknown() }

// prepare sets the Delivery's Due. If the handler must not be called, it returns the
// attempt's report. now is the store's time.
//
// The loop calls prepare before it starts the handler's goroutine. If mayCallSchedule
// is true, that goroutine calls prepare instead.
func (a *attempt) prepare(now store.Time) (early *report) {
	defer func() { a.d.Due = a.due.Std() }()
	switch {
	case a.unknown():
		// Log why: the handler exists, but not the schedule or the time zone.
		if a.handler != nil && a.recurErr != nil {
			a.loop.w.complain(fmt.Errorf("task %q: %w", printable(a.task.Key), a.recurErr))
		}
		return a.leaveToOthers(now)
	case a.recordErr != nil:
		return a.failed(NoRetry(a.recordErr)).unrun()
	}
	var over error
	switch {
	case a.d.Crashes >= a.loop.w.config.maxCrashes:
		// If the task did not repeat, the store would have made it a dead letter.
		// Another attempt might crash this worker too.
		over = errors.New(store.TextPoison)
	case a.d.Attempt > a.d.MaxAttempts:
		over = errors.New("durable: the worker of the last attempt crashed")
	}
	// Missed runs are skipped before the first report on the run. If all earlier
	// attempts crashed, there was no report, and the store still has the oldest missed
	// run.
	if a.task.Missed == LatestMissed && a.d.Attempt == a.d.Crashes+1 {
		more, err := a.skip(now)
		switch {
		case over != nil:
		case err != nil:
			return a.unplanned(err)
		case more:
			return a.handBack()
		}
	}
	if over != nil {
		return a.failed(NoRetry(over)).unrun()
	}
	if a.task.Missed == DeadMissed && a.d.Attempt == 1 {
		if late := now.Sub(a.due); late > a.task.MissedAfter {
			return a.failed(NoRetry(fmt.Errorf("durable: missed: %v late", late))).unrun()
		}
	}
	return nil
}

// run runs the attempt, on a goroutine of its own.
func (a *attempt) run() {
	if a.labelled {
		pprof.SetGoroutineLabels(a.ctx)
	}
	var r *report
	// Deferred, because a handler may call runtime.Goexit.
	defer func() {
		if r == nil {
			r = a.failed(errors.New("durable: the handler ended its goroutine"))
		}
		a.countBegun(r)
		a.leaseTimer.Stop()
		a.cancel(nil)
		a.loop.returned(r)
	}()
	r = a.handle()
}

// runHandler calls the handler and returns the report on the attempt.
func (a *attempt) handle() (r *report) {
	defer func() {
		if v := recover(); v != nil {
			a.loop.w.client.log.Error("durable: panic in a handler", "handler", a.task.Handler,
				"key", printable(a.task.Key), "panic", v, "stack", string(debug.Stack()))
			r = a.failed(fmt.Errorf("panic: %v", v))
		}
	}()
	if a.asks() {
		if early := a.prepare(a.claimed); early != nil {
			return early
		}
	}
	// Compute the next run's time first: if the schedule fails, the handler must not
	// run.
	if err := a.plan(); err != nil {
		return a.unplanned(err)
	}
	if cause := context.Cause(a.ctx); errors.Is(cause, ErrClosed) || errors.Is(cause, ErrLeaseLost) {
		return a.handBack() // the schedule took too long
	}
	ctx, cancel := a.loop.w.withTimeout(a.ctx, a.timeout())
	defer cancel()
	err := a.call(ctx)
	if err == nil {
		return a.done()
	}
	if errors.Is(context.Cause(ctx), ErrClosed) {
		return a.handBack()
	}
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) && !errors.Is(err, cause) {
		err = fmt.Errorf("%w (%w)", err, cause) // explain "context canceled"
	}
	return a.failed(err)
}

// withTimeout returns a context that ends with the cause ErrTimeout after d. If the
// clock is virtual, a timer ends the context, because package context uses the system's
// clock.
func (w *Worker) withTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if !w.virtual {
		return context.WithTimeoutCause(parent, d, ErrTimeout)
	}
	ctx, cancel := context.WithCancelCause(parent)
	t := w.timers.AfterFunc(d, func() { cancel(ErrTimeout) })
	return ctx, func() { t.Stop(); cancel(nil) }
}

// callHandler calls the handler, and counts the call.
func (a *attempt) call(ctx context.Context) error {
	a.called = true
	a.handler.n.running.Add(1)
	defer a.countRun(a.loop.w.now())
	return a.handler.run(ctx, a.d)
}
