package executor

import (
	"context"
	"runtime/debug"
	"sync"

	"github.com/tickless/tickless/internal/latch"
)

// A gate is the common part of [Inline] and [Goroutines]: it counts callbacks, refuses
// them after Close, and signals when the last one has ended.
type gate struct {
	panicHandler func(v any, stack []byte) // nil in a zero Inline or Goroutines: see mustBeMade

	mu struct {
		sync.Mutex
		Stats
		closed bool
		done   chan struct{} // closed when the last callback ends; nil unless a Shutdown waits
	}
}

func (g *gate) init(c config) { g.panicHandler = c.panicHandler }

func (g *gate) mustBeMade() {
	if g.panicHandler == nil {
		panic("executor: an Inline or Goroutines that was not made by NewInline or NewGoroutines")
	}
}

// beginCallback counts a callback as running and reports true, unless the gate is closed.
// The caller must call endCallback after the callback has run.
func (g *gate) beginCallback() bool {
	g.mustBeMade()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.closed {
		return false
	}
	g.mu.Submitted++
	g.mu.Running++
	g.mu.PeakWorkers = max(g.mu.PeakWorkers, g.mu.Running)
	return true
}

// runCallback runs f after beginCallback has returned true. It calls endCallback even if
// f panics, the panic handler panics, or f calls runtime.Goexit.
func (g *gate) runCallback(f func()) {
	defer g.endCallback()
	defer g.recoverPanic()
	f()
}

// recoverPanic recovers a panic and calls the handler. It must be deferred directly, not
// called by a deferred function: otherwise recover does nothing.
func (g *gate) recoverPanic() {
	if v := recover(); v != nil {
		g.mu.Lock()
		g.mu.Panicked++
		g.mu.Unlock()
		g.panicHandler(v, debug.Stack())
	}
}

func (g *gate) endCallback() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.Running--
	g.mu.Run++
	if g.mu.Running == 0 && g.mu.done != nil {
		close(g.mu.done)
		g.mu.done = nil
	}
}

// refuseCallbacks counts n callbacks as rejected and returns ErrClosed.
func (g *gate) refuseCallbacks(n int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.Rejected += uint64(n)
	return ErrClosed
}

// Close refuses new callbacks and returns nil. It does not wait: accepted callbacks still
// run.
func (g *gate) Close() error {
	g.mustBeMade()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.closed = true
	return nil
}

// Shutdown refuses new callbacks and waits for every accepted one to end. If ctx ends
// first, it returns the error of ctx.
func (g *gate) Shutdown(ctx context.Context) error {
	g.Close()
	g.mu.Lock()
	if g.mu.Running == 0 {
		g.mu.Unlock()
		return nil
	}
	if g.mu.done == nil {
		g.mu.done = make(chan struct{})
	}
	done := g.mu.done
	g.mu.Unlock()
	return latch.Await(ctx, done)
}

func (g *gate) stats() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.Stats
}
