// Package latch waits for things under way to end.
package latch

import (
	"context"
	"sync"
)

// A Latch counts things under way, and lets others wait until there are none. The
// zero Latch has a count of zero.
type Latch struct {
	mu   sync.Mutex
	n    int
	zero chan struct{} // closed when n falls to zero; nil if nobody waits
}

// Add changes the count by n.
func (l *Latch) Add(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n += n
	if l.n == 0 && l.zero != nil {
		close(l.zero)
		l.zero = nil
	}
}

// Wait blocks until the count is zero, or returns ctx's error if it ends first. If
// the count is zero already, Wait returns nil, whatever ctx says.
func (l *Latch) Wait(ctx context.Context) error {
	l.mu.Lock()
	if l.n == 0 {
		l.mu.Unlock()
		return nil
	}
	if l.zero == nil {
		l.zero = make(chan struct{})
	}
	zero := l.zero
	l.mu.Unlock()
	return Await(ctx, zero)
}

// Await blocks until done is closed, or returns ctx's error if it ends first. If
// done is closed already, Await returns nil, whatever ctx says.
func Await(ctx context.Context, done <-chan struct{}) error {
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
