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

// An attempt is a task that a loop has claimed, from the claim until the store
// has taken the report.
type attempt struct {
	loop    *loop
	task    Task
	d       Delivery
	hold    store.Lease
	handler *handler   // nil: unknown
	given   store.Time // the Due that the store has
	broken  error      // the record cannot be read
	// recurs is when the task repeats, and unread why that cannot be read here.
	recurs recurrence
	unread error
	// keeps is whether the store is to keep something of the run, and result a part of that.
	keeps  bool
	result []byte

	// due is as of when the task is run. Of the loop, and then of the goroutine that runs
	// the handler.
	due store.Time

	ctx      context.Context
	cancel   context.CancelCauseFunc
	labelled bool // ctx has labels for the goroutine
	// cut cancels ctx before the lease ends.
	cut timer.Handle

	// The loop's alone: when the lease was last prolonged, and its place among
	// those that are held.
	renewed    time.Time
	prev, next *attempt

	// hangs is when the lease is given up although the handler has not returned.
	// Fixed by start.
	hangs time.Time

	// after is what the task is to do after this run, and planned whether that is known.
	// Of the goroutine that runs the handler.
	after   store.When
	planned bool

	// called is whether the handler was called, and claimed when, by the store's clock, the
	// task was claimed. Of the goroutine that runs the handler.
	called  bool
	claimed store.Time

	hung bool // guarded by places.mu: its lease was given up

	// open is whether the store may still have the lease. The loop's alone.
	open bool
	// reported is guarded by loop.mu.
	reported bool
}

// handler is a function with its options.
type handler struct {
	name string
	run  Handler // with the middleware around it
	handlerConfig
	// labels is the context of a Run with the labels of goroutines; nil if the Worker has
	// no name. Of the loops.
	labels context.Context
	n      handlerCounters
	use
}

func (w *Worker) newAttempt(l *loop, x *store.Claimed) *attempt {
	a := &attempt{loop: l, given: x.Due, due: x.Due, hold: store.Lease{ID: x.ID, Token: x.Token}, handler: w.handlers[x.Handler]}
	var generation string
	a.task, generation, a.broken = decode(&x.Task)
	a.recurs, a.unread = a.task.recurrence(w.client.schedules)
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

// unknown reports whether the Worker does not know how to run the task.
func (a *attempt) unknown() bool {
	// Of a record that is damaged, the store may not have been able to read the handler.
	return a.broken == nil && (a.handler == nil || a.unread != nil) || errors.Is(a.broken, errNewer)
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

// asks reports whether prepare may ask the task's schedule, which may take any time.
func (a *attempt) asks() bool { return a.task.Schedule != "" && !a.unknown() }

// prepare finishes the Delivery, and returns a report if the attempt is over
// before it has begun. Now is the store's. The loop calls it, but not if it asks.
func (a *attempt) prepare(now store.Time) (early *report) {
	defer func() { a.d.Due = a.due.Std() }()
	switch {
	case a.unknown():
		// Whoever has written it knows it, and will come.
		if a.handler != nil && a.unread != nil {
			a.loop.w.complain(fmt.Errorf("task %q: %w", printable(a.task.Key), a.unread))
		}
		return a.left(now)
	case a.broken != nil:
		return a.failed(NoRetry(a.broken)).unrun()
	}
	var over error
	switch {
	case a.d.Crashes >= a.loop.w.config.maxCrashes:
		// It repeats: the store buries others by itself. Run again it may do what it did
		// to the workers before this one.
		over = errors.New(store.TextPoison)
	case a.d.Attempt > a.d.MaxAttempts:
		over = errors.New("durable: the worker of the last attempt crashed")
	}
	// Workers that crashed have not reported what they skipped: the store has the oldest
	// run, until an attempt fails.
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

// run is an attempt's goroutine.
func (a *attempt) run() {
	if a.labelled {
		pprof.SetGoroutineLabels(a.ctx)
	}
	var r *report
	// Deferred, for a handler that ends its goroutine.
	defer func() {
		if r == nil {
			r = a.failed(errors.New("durable: the handler ended its goroutine"))
		}
		a.countBegun(r)
		a.cut.Stop()
		a.cancel(nil)
		a.loop.returned(r)
	}()
	r = a.handle()
}

// handle runs the handler and returns the report.
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
	// A schedule that cannot go on is to say so before the run, not when it is done.
	if err := a.plan(); err != nil {
		return a.unplanned(err)
	}
	if cause := context.Cause(a.ctx); errors.Is(cause, ErrClosed) || errors.Is(cause, ErrLeaseLost) {
		return a.handBack() // the schedule took long
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
		err = fmt.Errorf("%w (%w)", err, cause) // what "context canceled" means
	}
	return a.failed(err)
}

// withTimeout returns a context that ends with ErrTimeout as its cause after d. Handlers
// wait for it as a rule, so it is package context's. A virtual clock ends it by a timer.
func (w *Worker) withTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if !w.virtual {
		return context.WithTimeoutCause(parent, d, ErrTimeout)
	}
	ctx, cancel := context.WithCancelCause(parent)
	t := w.timers.AfterFunc(d, func() { cancel(ErrTimeout) })
	return ctx, func() { t.Stop(); cancel(nil) }
}

// call calls the handler.
func (a *attempt) call(ctx context.Context) error {
	a.called = true
	a.handler.n.running.Add(1)
	defer a.countRun(a.loop.w.now())
	return a.handler.run(ctx, a.d)
}
