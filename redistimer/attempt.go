package redistimer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/tickless/tickless/timer"
)

// An attempt is a task that a loop has claimed, from the claim until the server
// has taken the report.
type attempt struct {
	loop    *loop
	task    Task
	d       Delivery
	handler *handler // nil: unknown
	due     int64    // of this run, microseconds
	token   string
	broken  error // the record cannot be read

	ctx    context.Context
	cancel context.CancelCauseFunc
	// cut cancels ctx before the lease ends.
	cut timer.Handle

	// The loop's alone: when the lease was last prolonged, and its place among
	// those that are held, the one that was prolonged longest ago first.
	renewed    time.Time
	prev, next *attempt
	// open is whether the server may still have the lease. The loop's alone.
	open bool

	// hangs is when the lease is given up although the handler has not returned.
	// Fixed by begin.
	hangs time.Time

	// after is when the run after this one is due, in microseconds; 0 if there is
	// none. Planned is whether it is known. Of the goroutine that runs the handler.
	after   int64
	planned bool

	// reported is guarded by loop.mu.
	reported bool
}

// handler is a function with its options.
type handler struct {
	name string
	run  Handler
	handlerConfig
}

// A report is what the finish script is told.
type report struct {
	a    *attempt
	op   string // one of the letters of scripts/finish.lua
	when string
	text string
	err  error
}

// newAttempt makes one of what the claim script gave: before is the run without
// it.
func (w *Worker) newAttempt(l *loop, id, record string, token int64, before run) *attempt {
	a := &attempt{loop: l, due: before.due.UnixMicro(), token: strconv.FormatInt(token, 10)}
	var generation string
	a.task, generation, a.broken = decode(keyOf(id), record)
	if single(id) {
		a.task.Every, a.task.Schedule = 0, ""
	}
	a.handler = w.handlers[a.task.Handler]
	a.d = Delivery{
		Key:     a.task.Key,
		Handler: a.task.Handler,
		Body:    a.task.Body,
		Headers: a.task.Headers,
		Attempt: before.attempts + 1,
		Crashes: before.crashes,
		Token:   token,

		Concurrency: w.config.concurrency,

		id:  id,
		gen: generation,
	}
	return a
}

func (a *attempt) config() *handlerConfig {
	if a.handler == nil {
		return &a.loop.w.config.handler
	}
	return &a.handler.handlerConfig
}

// prepare finishes the Delivery, and returns a report if the attempt is over
// before it has begun. Now is the server's.
func (a *attempt) prepare(now int64) (early *report) {
	defer func() {
		a.d.Due = time.UnixMicro(a.due)
	}()
	a.d.MaxAttempts = a.task.MaxAttempts
	if a.d.MaxAttempts == 0 {
		a.d.MaxAttempts = a.config().attempts
	}
	if a.broken != nil {
		return a.failed(NoRetry(a.broken)).unrun()
	}
	if !a.known() {
		return &report{a: a, op: "u", when: leaveFor(time.Duration(now-a.due) * time.Microsecond)}
	}
	if a.d.Attempt > a.d.MaxAttempts {
		return a.failed(NoRetry(errors.New("redistimer: the last attempt has ended with its worker"))).unrun()
	}
	if a.d.Attempt == 1 {
		switch a.task.Missed {
		case LatestMissed:
			if err := a.skip(now); err != nil {
				return a.failed(err).unrun()
			}
		case DeadMissed:
			if late := time.Duration(now-a.due) * time.Microsecond; late > a.task.MissedAfter {
				return a.failed(NoRetry(fmt.Errorf("redistimer: missed: it comes %v late", late))).unrun()
			}
		}
	}
	return nil
}

// known reports whether the worker has all that the task names. One of another
// version may not, while a new version is rolled out.
func (a *attempt) known() bool {
	return a.handler != nil && (a.task.Schedule == "" || a.loop.w.config.schedules[a.task.Schedule] != nil)
}

// leaveFor is when another worker shall look at a task that this one does not
// know: soon at first, and the later the longer nobody has known it, so that very
// many such tasks do not keep the workers from others.
func leaveFor(late time.Duration) string {
	const soonest, latest = 100 * time.Millisecond, 30 * time.Second
	d := min(max(late/4, soonest), latest)
	when, _ := After(d/2 + rand.N(d/2)).arg()
	return when
}

// skip makes the latest run of a repeating task, of those that are due, this one.
func (a *attempt) skip(now int64) error {
	if a.task.Every > 0 {
		every := a.task.Every.Microseconds()
		a.due += max(0, now-a.due) / every * every
		return nil
	}
	// A schedule that was missed for years by the second may take several claims.
	for range 100_000 {
		next, ok, err := a.following()
		if err != nil || !ok || next > now {
			return err
		}
		a.due = next
	}
	return nil
}

// minStep is the least time between two runs of a task that repeats.
const minStep = time.Millisecond

// following returns when the run after this one is due, or false if there is none. An
// error is of a schedule: one that panics may do better another time.
func (a *attempt) following() (at int64, ok bool, err error) {
	switch {
	case a.task.Every > 0:
		return min(a.due+a.task.Every.Microseconds(), farthest), true, nil
	case a.task.Schedule == "":
		return 0, false, nil
	}
	defer func() {
		if v := recover(); v != nil {
			at, ok, err = 0, false, fmt.Errorf("redistimer: panic in the schedule %q: %v", a.task.Schedule, v)
		}
	}()
	schedule := a.loop.w.config.schedules[a.task.Schedule]
	if schedule == nil {
		return 0, false, nil
	}
	this := time.UnixMicro(a.due)
	next := schedule.Next(this)
	switch {
	case next.IsZero():
		return 0, false, nil
	case !next.After(this):
		return 0, false, NoRetry(fmt.Errorf("redistimer: the schedule %q does not go on: after %s comes %s",
			a.task.Schedule, this.UTC().Format(time.RFC3339Nano), next.UTC().Format(time.RFC3339Nano)))
	case next.Year() >= maxYear: // beyond some year it has no UnixMicro
		return farthest, true, nil
	}
	return max(next.UnixMicro(), a.due+minStep.Microseconds()), true, nil
}

// plan finds out when the run after this one is due.
func (a *attempt) plan() error {
	at, ok, err := a.following()
	if err == nil && ok {
		a.after = at
	}
	a.planned = err == nil
	return err
}

// run is an attempt's goroutine.
func (a *attempt) run() {
	var r *report
	// Deferred, for a handler that ends its goroutine.
	defer func() {
		if r == nil {
			r = a.failed(errors.New("redistimer: the handler ended its goroutine"))
		}
		a.loop.report(r)
		a.cut.Stop()
		a.cancel(context.Canceled)
		a.loop.slots.put(1)
	}()
	r = a.handle()
}

// handle runs the handler and returns the report.
func (a *attempt) handle() (r *report) {
	defer func() {
		if v := recover(); v != nil {
			a.loop.w.client.config.log.Error("redistimer: panic in a handler", "handler", a.task.Handler,
				"key", printable(a.task.Key), "panic", v, "stack", string(debug.Stack()))
			r = a.failed(fmt.Errorf("panic: %v", v))
		}
	}()
	// A schedule that cannot go on is to say so before the run, not when it is done.
	if err := a.plan(); err != nil {
		return a.failed(err).unrun()
	}
	ctx, cancel := a.loop.w.timers.WithTimeoutCause(a.ctx, a.timeout(), ErrTimeout)
	defer cancel()
	err := a.handler.run(ctx, a.d)
	if err == nil {
		return a.done()
	}
	if errors.Is(context.Cause(ctx), ErrShutdown) {
		return &report{a: a, op: "b"}
	}
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) && !errors.Is(err, cause) {
		err = fmt.Errorf("%w (%w)", err, cause) // what "context canceled" means
	}
	return a.failed(err)
}

func (a *attempt) timeout() time.Duration {
	if a.task.Timeout > 0 {
		return a.task.Timeout
	}
	return a.config().timeout
}

// done is the report of a run that went well.
func (a *attempt) done() *report {
	r := &report{a: a, op: "d"}
	if a.after != 0 {
		r.when = strconv.FormatInt(a.after, 10)
	}
	return r
}

// failed is the report of an attempt that failed.
func (a *attempt) failed(err error) *report {
	r := &report{a: a, op: "r", text: cut(err.Error()), err: err}
	var never *NoRetryError
	var back *HandBackError
	if !errors.As(err, &never) && errors.As(err, &back) {
		r.op = "b"
		r.when = delayArg(back.After)
		return r
	}
	if never != nil || a.d.Attempt >= a.d.MaxAttempts {
		r.op = "x"
		if !a.planned {
			_ = a.plan() // without a next time the task itself is the dead letter
		}
		if a.after != 0 {
			r.when = strconv.FormatInt(a.after, 10)
		}
		return r
	}
	var after *RetryAfterError
	if errors.As(err, &after) {
		r.when = delayArg(after.After)
		return r
	}
	r.when = delayArg(a.config().delay(a.d.Attempt))
	return r
}

// delayArg is a delay as a report has it: within what the scripts take, since what a
// handler says must not spoil the reports of others that are sent with it.
func delayArg(d time.Duration) string {
	when, _ := After(min(max(0, d), maxDelay)).arg()
	return when
}

// unrun says of a failure for good that its attempt does not count: the handler was
// not called.
func (r *report) unrun() *report {
	if r.op == "x" {
		r.op = "m"
	}
	return r
}

// delay is the time between an attempt and the next.
func (c *handlerConfig) delay(attempt int) time.Duration {
	limit := c.cap
	if shift := attempt - 1; shift < 62 && c.backoff <= c.cap>>shift {
		limit = c.backoff << shift
	}
	return time.Duration(rand.Int64N(int64(limit) + 1))
}
