package executor

import (
	"context"
	"runtime/debug"
	"sync"
)

// A gate is what [Inline] and [Goroutines] share: it lets callbacks in until it is
// closed, counts them, and tells when the last of them has left.
type gate struct {
	handler func(v any, stack []byte) // nil: NewInline or NewGoroutines has not made it

	mu struct {
		sync.Mutex
		Stats
		closed bool
		done   chan struct{} // closed with the last callback; nil unless somebody waits
	}
}

func (g *gate) init(c config) { g.handler = c.panicHandler }

func (g *gate) mustBeMade() {
	if g.handler == nil {
		panic("executor: an Inline or Goroutines that was not made by NewInline or NewGoroutines")
	}
}

// enter reports whether a callback may run; it must leave afterwards.
func (g *gate) enter() bool {
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

// run runs a callback that has entered. The count of those that have left includes what
// returned, what panicked, even in the handler, and what called runtime.Goexit.
func (g *gate) run(f func()) {
	defer g.leave()
	defer g.catch()
	f()
}

// catch keeps a panic, and lets pass a return and a runtime.Goexit. It is for a defer
// statement alone, since recover only works there.
func (g *gate) catch() {
	if v := recover(); v != nil {
		g.mu.Lock()
		g.mu.Panicked++
		g.mu.Unlock()
		g.handler(v, debug.Stack())
	}
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.Running--
	g.mu.Run++
	if g.mu.Running == 0 && g.mu.done != nil {
		close(g.mu.done)
		g.mu.done = nil
	}
}

// refuse counts n callbacks as rejected.
func (g *gate) refuse(n int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.Rejected += uint64(n)
	return ErrClosed
}

// Close refuses new work, and returns nil. It waits for nothing: callbacks that were
// accepted run to their end.
func (g *gate) Close() error {
	g.mustBeMade()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.closed = true
	return nil
}

// Shutdown refuses new work and waits for every callback to end, or returns ctx's error if
// that ends first.
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
	return await(ctx, done)
}

// await returns when done is closed, or ctx's error if that ends first.
func await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *gate) stats() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.Stats
}
