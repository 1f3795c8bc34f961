package timer

import (
	"context"
	"sync"
)

// A latch counts things under way, and lets others wait until there are none.
type latch struct {
	mu   sync.Mutex
	n    int
	done chan struct{} // closed when n falls to zero; nil if nobody waits
}

// add changes the count by n.
func (l *latch) add(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n += n
	if l.n == 0 && l.done != nil {
		close(l.done)
		l.done = nil
	}
}

// wait blocks until the count is zero, or returns ctx's error if it ends first.
func (l *latch) wait(ctx context.Context) error {
	l.mu.Lock()
	if l.n == 0 {
		l.mu.Unlock()
		return nil
	}
	if l.done == nil {
		l.done = make(chan struct{})
	}
	done := l.done
	l.mu.Unlock()
	return await(ctx, done)
}

// await blocks until done is closed, or returns ctx's error if it ends first. What
// is done already is so whatever ctx says.
func await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	default:
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
