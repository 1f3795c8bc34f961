package purgatory

import (
	"reflect"
	"runtime"
)

// A TryComplete runs under its operation's lock. If it asks for an operation to
// be completed, checked or taken out, and that one is its own, it would wait for
// itself; if it is another, whose TryComplete asks for the first, both would
// wait for ever. So nobody waits for an operation's lock from inside a
// TryComplete: whoever finds it busy looks at its own stack first, and panics.
//
// Only those who must wait, and CancelForKey and Close, pay for the look, about half a
// microsecond.

// try runs an operation's TryComplete. It is a function of its own, and not a
// generic one, so that its frame can be found on a stack.
//
//go:noinline
func try(op operation) bool { return op.TryComplete() }

var tryEntry = reflect.ValueOf(try).Pointer()

// refuseInsideTryComplete panics if the calling goroutine is running a
// TryComplete.
func refuseInsideTryComplete() {
	var pcs [64]uintptr
	for skip := 2; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs[:])
		for _, pc := range pcs[:n] {
			if f := runtime.FuncForPC(pc - 1); f != nil && f.Entry() == tryEntry {
				panic("purgatory: TryComplete waits for an operation's lock: it must only answer, and leave completing to the purgatory")
			}
		}
		if n < len(pcs) {
			return
		}
	}
}
