package durable

import (
	"context"
	"runtime/debug"
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
					"key", printableKey(a.task.Key), "panic", v, "stack", string(debug.Stack()))
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
