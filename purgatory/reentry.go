package purgatory

import (
	"reflect"
	"runtime"
)

// TryComplete runs under its operation's lock. If it called ForceComplete of its own
// operation, it would wait for itself. If two TryCompletes did so with each other's
// operations, both would wait for ever.
//
// So a goroutine that finds an operation's lock taken searches its own stack before it
// waits. It panics if it finds a TryComplete. The search takes about half a
// microsecond. Only CancelForKey, Close, and calls that find a lock taken need it.

// try calls an operation's TryComplete. It is not generic and not inlined, so that
// refuseInsideTryComplete can find it on a stack.
//
//go:noinline
func try(op operation) bool { return op.TryComplete() }

var tryEntryPC = reflect.ValueOf(try).Pointer()

// refuseInsideTryComplete panics if the calling goroutine is running a TryComplete.
func refuseInsideTryComplete() {
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
