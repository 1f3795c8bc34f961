package durable

import (
	"bytes"
	"fmt"
	"runtime"
)

// watchForHang runs when the handler's context has ended, whatever ended it. It logs a handler
// that does not return, once.
func (a *attempt) watchForHang() {
	w := a.w
	a.Place.Watch(a.timeoutAt.Sub(w.now()), a.Timeout, func() {
		w.client.log.Error("durable: a handler does not return after its timeout", "handler", a.task.Handler,
			"key", printableKey(a.task.Key), "timeout", a.Timeout, "stack", a.stack())
	})
}

// stack returns the stack of the attempt's goroutine. The runtime can only return all
// stacks, so stack looks for the one with a call of the attempt's method runHandler.
func (a *attempt) stack() string {
	const maxSize = 64 << 20
	stacks := make([]byte, 1<<20)
	for {
		n := runtime.Stack(stacks, true)
		if n < len(stacks) || n >= maxSize {
			stacks = stacks[:n]
			break
		}
		stacks = make([]byte, 4*len(stacks))
	}
	frame := fmt.Appendf(nil, "durable.(*attempt).runHandler(%p", a)
	for goroutine := range bytes.SplitSeq(stacks, []byte("\n\n")) {
		if bytes.Contains(goroutine, frame) {
			return string(goroutine)
		}
	}
	return "(not found)"
}
