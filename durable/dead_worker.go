package durable

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/tickless/tickless/durable/internal/worker"
	"github.com/tickless/tickless/durable/store"
)

// WithDeadHook sets a function that the Worker calls when a task becomes a dead letter,
// for example to raise an alert. The function gets the last attempt and its error. It
// runs on its own goroutine, and its panics are logged. Run waits for the function. ctx
// ends when Run returns.
//
// The Worker does not call the function if the process ends, or if the store itself
// made the dead letter: a task that crashed its workers too often. [Client.Stats]
// counts all dead letters as Died. WithDeadHook panics if f is nil.
func WithDeadHook(f func(ctx context.Context, d Delivery, err error)) HandlerOption {
	if f == nil {
		panic("durable: WithDeadHook: nil function")
	}
	return handlerOption(func(c *handlerConfig) { c.deadHook = f })
}

// callDeadHook calls the hook for a dead letter that this attempt has made.
func (a *attempt) callDeadHook(err error) {
	w, hook, ctx := a.w, a.config().deadHook, a.w.commandCtx // the next Run has another context
	if hook == nil {
		return
	}
	w.deadHooks.Go(func() {
		defer func() {
			if v := recover(); v != nil {
				w.client.log.Error("durable: panic in a dead hook", "handler", a.task.Handler,
					"key", store.Shorten(a.task.Key), "panic", v, "stack", string(debug.Stack()))
			}
		}()
		hook(ctx, a.delivery, err)
	})
}

// waitForDeadHooks waits until all functions of WithDeadHook have returned, or the Run
// must stop waiting.
func (w *Worker) waitForDeadHooks(r *currentRun) {
	hooksReturned, hooks := make(chan struct{}), w.deadHooks // the next Run has others
	go func() {
		hooks.Wait()
		close(hooksReturned)
	}()
	select {
	case <-hooksReturned:
	case <-r.abortCtx.Done():
	}
}

type deadLimit struct {
	maxAge   time.Duration // 0: no limit
	maxCount int           // 0: no limit
}

// WithDeadLimit makes the Worker purge dead letters once a minute: those older than
// age, and the oldest if there are more than count. Zero, the default, means no limit.
// One Worker with this option is enough for a store. WithDeadLimit panics if age or
// count is negative.
func WithDeadLimit(age time.Duration, count int) WorkerOption {
	if age < 0 || count < 0 {
		panic(fmt.Sprintf("durable: WithDeadLimit: must not be negative, got %v and %d", age, count))
	}
	return workerOption(func(c *workerConfig) { c.deadLimit = deadLimit{age, count} })
}

// purgeDeadLetters purges dead letters that exceed the limit, until the context ends.
func (w *Worker) purgeDeadLetters(ctx context.Context) {
	for {
		if err := w.purgeExcess(ctx); err != nil && ctx.Err() == nil {
			w.logError(err)
		}
		if worker.Sleep(ctx, time.Minute) != nil {
			return
		}
	}
}

// purgeExcess purges dead letters that are too old, and then the oldest of those that are too
// many.
func (w *Worker) purgeExcess(ctx context.Context) error {
	limit := w.config.deadLimit
	purge := func(f Filter, opts ...BulkOption) error {
		n, err := w.client.PurgeAll(ctx, f, opts...)
		w.counters.add(&w.counters.stats.Purged, n)
		return err
	}
	if limit.maxAge > 0 {
		now, err := w.client.latestNow(ctx)
		if err == nil {
			err = purge(Filter{State: Dead, To: now.Add(-limit.maxAge)})
		}
		if err != nil {
			return err
		}
	}
	if limit.maxCount == 0 {
		return nil
	}
	st, err := w.client.Stats(ctx)
	if excess := int(st.Dead) - limit.maxCount; err == nil && excess > 0 {
		err = purge(Filter{State: Dead}, AtMost(excess))
	}
	return err
}
