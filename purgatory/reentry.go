package purgatory

import (
	"reflect"
	"runtime"
)

// TryComplete runs under its operation's lock. If it called a method that waits for the
// lock of an operation, it might wait for ever. So before a goroutine waits for such a
// lock, it searches its own stack for a TryComplete, and panics if it finds one. The
// search takes about half a microsecond.

// try calls an operation's TryComplete. It is not generic and not inlined, so that
// panicInsideTryComplete can find it on a stack.
//
//go:noinline
func try(op operation) bool { return op.TryComplete() }

var tryEntryPC = reflect.ValueOf(try).Pointer()

// panicInsideTryComplete panics if the calling goroutine is running a TryComplete.
func panicInsideTryComplete() {
	var pcs [64]uintptr
	for skip := 2; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs[:])
		for _, pc := range pcs[:n] {
			if f := runtime.FuncForPC(pc - 1); f != nil && f.Entry() == tryEntryPC {
				panic("purgatory: TryComplete waits for an operation's lock: it must only report whether the condition holds")
			}
		}
		if n < len(pcs) {
			return
		}
	}
}
