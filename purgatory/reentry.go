package purgatory

import (
	"reflect"
	"runtime"
)

// A TryComplete runs under its operation's lock. If it completes, checks or removes its
// own operation, it would wait for itself. If two TryCompletes do so with each other's
// operations, both would wait for ever. So a goroutine that finds an operation's lock
// taken searches its own stack before it waits, and panics if it finds a TryComplete.
//
// Only calls that must wait, CancelForKey and Close search the stack. That takes about
// half a microsecond.

// try calls an operation's TryComplete. It is a separate function, and not a generic one,
// so that its frame can be found on a stack.
//
//go:noinline
func try(op operation) bool { return op.TryComplete() }

var tryEntry = reflect.ValueOf(try).Pointer()

// refuseInsideTryComplete panics if the calling goroutine is running a TryComplete.
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
