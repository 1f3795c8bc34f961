package executor

import (
	"context"
	"sync"

	"github.com/tickless/tickless/internal/bubble"
	"github.com/tickless/tickless/internal/latch"
	"go.uber.org/atomic"
)

// A gate is what [Inline] and [Goroutines] share: it lets callbacks in until
// it is closed, and tells when the last of them has left.
//
// Its counts come first, for their alignment: see guard.
type gate struct {
	ran      atomic.Int64
	rejected atomic.Int64
	guard

	// state is twice the number of callbacks inside, plus one once closed: a
	// single word, so that a Submit which races with Shutdown is either
	// refused or waited for.
	state atomic.Int32
	peak  atomic.Int32

	made bool // init was called

	mu sync.Mutex
	// over is set when the gate is closed and nobody inside. Then done is closed. In a
	// bubble it is nil unless somebody waits: nobody may close it when that is over.
	over bool
	done chan struct{}
}

func (g *gate) init(c config) {
	g.handler = c.panicHandler
	g.made = true
	if !bubble.Inside() {
		g.done = make(chan struct{})
	}
}

// mustBeMade panics unless init was called. (The zero gate would do, but for its
// counts, which need not be aligned in it: see guard.)
func (g *gate) mustBeMade() {
	if !g.made {
		panic("executor: an Inline or Goroutines that was not made by NewInline or NewGoroutines")
	}
}

// enter reports whether a callback may run; it must leave afterwards.
func (g *gate) enter() bool {
	g.mustBeMade()
	s := g.state.Add(2)
	if s&1 != 0 {
		g.exit()
		return false
	}
	for n := s >> 1; ; {
		peak := g.peak.Load()
		if n <= peak || g.peak.CompareAndSwap(peak, n) {
			return true
		}
	}
}

// leave is deferred around the callback: it counts what returned, what
// panicked, even in the handler, and what called runtime.Goexit.
func (g *gate) leave() {
	g.ran.Inc()
	g.exit()
}

// exit takes one off. Of two callbacks refused at the same time both may find
// the gate empty, hence over.
func (g *gate) exit() {
	if g.state.Sub(2) == 1 {
		g.mu.Lock()
		defer g.mu.Unlock()
		if !g.over && g.done != nil {
			close(g.done)
		}
		g.over = true
	}
}

// refuse counts n callbacks as rejected.
func (g *gate) refuse(n int) error {
	g.rejected.Add(int64(n))
	return ErrClosed
}

// close refuses what comes from now on.
func (g *gate) close() {
	g.mustBeMade()
	for {
		s := g.state.Load()
		if s&1 != 0 {
			return
		}
		// Go in as a callback would, so that leaving finds out whether it
		// was the last.
		if g.state.CompareAndSwap(s, s+2+1) {
			g.exit()
			return
		}
	}
}

func (g *gate) shutdown(ctx context.Context) error {
	g.close()
	g.mu.Lock()
	if g.over {
		g.mu.Unlock()
		return nil
	}
	if g.done == nil {
		g.done = make(chan struct{})
	}
	done := g.done
	g.mu.Unlock()
	return latch.Await(ctx, done)
}

func (g *gate) stats() Stats {
	ran, running := g.ran.Load(), int(g.state.Load()>>1)
	return Stats{
		Submitted: uint64(ran) + uint64(running),
		Run:       uint64(ran),
		Panicked:  uint64(g.panicked.Load()),
		Rejected:  uint64(g.rejected.Load()),
		Running:   running,
	}
}
