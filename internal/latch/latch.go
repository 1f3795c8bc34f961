// Package latch lets callers wait until all running activities have ended.
package latch

import (
	"context"
	"sync"
)

// A Latch counts activities, and lets callers wait until the count is zero. The zero
// Latch has a count of zero.
type Latch struct {
	mu          sync.Mutex
	count       int
	reachedZero chan struct{} // closed when count becomes zero; nil unless a Wait blocks
}

// Add changes the count by n.
func (l *Latch) Add(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count += n
	if l.count == 0 && l.reachedZero != nil {
		close(l.reachedZero)
		l.reachedZero = nil
	}
}

// Wait blocks until the count is zero or ctx ends, and returns nil or ctx's error. If
// both are already true, it returns nil.
func (l *Latch) Wait(ctx context.Context) error {
	l.mu.Lock()
	if l.count == 0 {
		l.mu.Unlock()
		return nil
	}
	if l.reachedZero == nil {
		l.reachedZero = make(chan struct{})
	}
	reachedZero := l.reachedZero
	l.mu.Unlock()
	return Await(ctx, reachedZero)
}

// Await blocks until done is closed or ctx ends, and returns nil or ctx's error. If both
// are already true, it returns nil.
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
