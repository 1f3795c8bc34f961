package purgatory

import (
	"reflect"
	"runtime"
)

// TryComplete runs under its operation's lock. If it called a method that waits for the
// lock of an operation, it might wait for ever. So before a goroutine waits for such a
// lock, it searches its own stack for a TryComplete, and panics if it finds one. The
// search takes about half a microsecond.

// tryComplete calls an operation's TryComplete. It is not generic and not inlined, so
// that panicIfInsideTryComplete can find it on a stack.
//
//go:noinline
func tryComplete(op operationCallbacks) bool { return op.TryComplete() }

var tryCompleteEntryPC = reflect.ValueOf(tryComplete).Pointer()

// panicIfInsideTryComplete panics if the calling goroutine is running a TryComplete.
func panicIfInsideTryComplete() {
	var pcs [64]uintptr
	for skip := 2; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs[:])
		for _, pc := range pcs[:n] {
			if f := runtime.FuncForPC(pc - 1); f != nil && f.Entry() == tryCompleteEntryPC {
				panic("purgatory: TryComplete waits for an operation's lock: it must only report whether the condition holds")
			}
		}
		if n < len(pcs) {
			return
		}
	}
}
