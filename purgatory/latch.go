package purgatory

import (
	"context"
	"sync"
)

// A latch counts things under way, and lets others wait until there are none.
type latch struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // closed when n falls to zero; nil if nobody waits
}

// add changes the count by n.
func (l *latch) add(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n += n
	if l.n == 0 && l.none != nil {
		close(l.none)
		l.none = nil
	}
}

// wait blocks until the count is zero, or returns ctx's error if it ends first.
func (l *latch) wait(ctx context.Context) error {
	l.mu.Lock()
	if l.n == 0 {
		l.mu.Unlock()
		return nil
	}
	if l.none == nil {
		l.none = make(chan struct{})
	}
	none := l.none
	l.mu.Unlock()
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
