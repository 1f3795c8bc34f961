package purgatory

import (
	"fmt"
	"os"
	"runtime/debug"
)

// catch is for a defer statement alone, since recover only works there. It keeps
// a panic from the operations that come after, and lets pass a return and a
// runtime.Goexit.
func (p *Purgatory[K]) catch() {
	if v := recover(); v != nil {
		p.report(v)
	}
}

func (p *Purgatory[K]) report(v any) {
	p.panics.Inc()
	p.onPanic(v, debug.Stack())
}

// guard runs f, whose panic goes to the handler.
func (p *Purgatory[K]) guard(f func()) {
	defer p.catch()
	f()
}

func printPanic(v any, stack []byte) {
	fmt.Fprintf(os.Stderr, "purgatory: panic in an operation: %v\n\n%s\n", v, stack)
}
