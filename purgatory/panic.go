package purgatory

import (
	"fmt"
	"os"
	"runtime/debug"
)

func (p *Purgatory[K]) reportPanic(v any) {
	p.panicCount.Inc()
	p.onPanic(v, debug.Stack())
}

// callAndReportPanic runs f and reports a panic of f to the handler, so that other
// operations continue.
func (p *Purgatory[K]) callAndReportPanic(f func()) {
	defer func() {
		if v := recover(); v != nil {
			p.reportPanic(v)
		}
	}()
	f()
}

func printPanic(v any, stack []byte) {
	fmt.Fprintf(os.Stderr, "purgatory: panic in an operation: %v\n\n%s\n", v, stack)
}
