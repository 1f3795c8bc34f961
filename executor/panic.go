package executor

import (
	"fmt"
	"os"
	"runtime/debug"

	"go.uber.org/atomic"
)

// A guard keeps the panics of callbacks from everybody else: it counts them
// and hands them to the user's handler.
//
// The 64-bit count comes first because go.uber.org/atomic does not align it
// by itself where words have 32 bits: whoever embeds a guard places it at a
// multiple of 8 bytes from the start of something allocated alone.
type guard struct {
	panicked atomic.Int64
	handler  func(v any, stack []byte)
}

// catch is for a defer statement alone, since recover only works there. It
// keeps a panic, and lets pass a return and a runtime.Goexit.
func (g *guard) catch() {
	if v := recover(); v != nil {
		g.report(v)
	}
}

// report counts first: a handler that panics in its turn must find the
// numbers right.
func (g *guard) report(v any) {
	g.panicked.Inc()
	g.handler(v, debug.Stack())
}

func printPanic(v any, stack []byte) {
	fmt.Fprintf(os.Stderr, "executor: panic in a callback: %v\n\n%s\n", v, stack)
}
