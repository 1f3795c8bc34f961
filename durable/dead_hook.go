package durable

import (
	"context"
	"runtime/debug"
)

// WithDeadHook sets a function that the Worker calls when a task becomes a dead letter,
// for example to raise an alert. The function gets the last attempt and its error, and
// runs on a goroutine of its own. Run waits for it as for handlers, and cancels ctx
// when it returns. A panic is logged.
//
// The call comes after the store has confirmed the dead letter, so it does not happen
// if the process ends in between. There is no call for a task whose workers crashed too
// often, because the store makes that dead letter: Stats counts it as Died.
// WithDeadHook panics if f is nil.
func WithDeadHook(f func(ctx context.Context, d Delivery, err error)) HandlerOption {
	if f == nil {
		panic("durable: WithDeadHook: nil function")
	}
	return handlerOption(func(c *handlerConfig) { c.deadHook = f })
}

// callDeadHook calls the hook for a task that this report has made a dead letter.
func (w *Worker) callDeadHook(r *report) {
	hook := r.a.config().deadHook
	if hook == nil {
		return
	}
	w.hooks.Go(func() {
		defer func() {
			if v := recover(); v != nil {
				w.client.log.Error("durable: panic in a dead hook", "handler", r.a.task.Handler,
					"key", printable(r.a.task.Key), "panic", v, "stack", string(debug.Stack()))
			}
		}()
		hook(w.commands, r.a.d, r.err)
	})
}

// waitForHooks waits until the dead hooks have returned, or until the Run must not wait
// any longer.
func (w *Worker) waitForHooks(r *currentRun) {
	returned, hooks := make(chan struct{}), w.hooks // the next Run has others
	go func() {
		hooks.Wait()
		close(returned)
	}()
	select {
	case <-returned:
	case <-r.abort:
	}
}
