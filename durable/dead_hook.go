package durable

import (
	"context"
	"runtime/debug"
)

// WithDeadHook sets what is called when the Worker has made a dead letter of a task, for
// an alert for example. It gets the last attempt and its error, and runs on a goroutine of
// its own. Run waits for it as it waits for handlers, and cancels ctx when it returns. A
// panic is logged.
//
// It is called after the store has confirmed the report, so not at all if the process
// ends in between. A task that the store buries by itself, because its workers crashed, is
// not seen by any worker: Stats counts it as Died. WithDeadHook panics if f is nil.
func WithDeadHook(f func(ctx context.Context, d Delivery, err error)) HandlerOption {
	if f == nil {
		panic("durable: WithDeadHook with a nil function")
	}
	return handlerOption(func(c *handlerConfig) { c.deadHook = f })
}

// callDeadHook calls the hook for a task that its report has made a dead letter.
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

// waitForHooks waits until the dead hooks have returned, or the Run is not to wait any more.
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
