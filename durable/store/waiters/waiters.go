// Package waiters wakes the calls that wait for a store's shards.
package waiters

import (
	"context"
	"slices"
	"sync"

	"github.com/tickless/tickless/durable/store"
)

// Waiters are the waiting calls of a store's Wait. The zero Waiters is ready to use.
type Waiters struct {
	mu     sync.Mutex
	all    map[*waiter]struct{}
	closed bool
}

type waiter struct {
	signal  chan struct{} // has an element if shards are pending, or all is over
	shards  []int
	pending []int // guarded by Waiters.mu
}

// Wait calls wake once for each of the shards, so that no earlier change is missed, and
// then whenever Wake is called for one of them. It returns the context's error or
// store.ErrClosed.
func (ws *Waiters) Wait(ctx context.Context, shards []int, wake func(shard int)) error {
	w := &waiter{signal: make(chan struct{}, 1), shards: shards, pending: slices.Clone(shards)}
	w.signal <- struct{}{}
	ws.mu.Lock()
	if ws.all == nil {
		ws.all = make(map[*waiter]struct{})
	}
	ws.all[w] = struct{}{}
	ws.mu.Unlock()
	defer func() {
		ws.mu.Lock()
		defer ws.mu.Unlock()
		delete(ws.all, w)
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.signal:
		}
		ws.mu.Lock()
		some, closed := w.pending, ws.closed
		w.pending = nil
		ws.mu.Unlock()
		if closed {
			return store.ErrClosed
		}
		for _, shard := range some {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			wake(shard)
		}
	}
}

// Wake wakes the calls that wait for a shard.
func (ws *Waiters) Wake(shard int) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for w := range ws.all {
		if slices.Contains(w.shards, shard) && !slices.Contains(w.pending, shard) {
			w.pending = append(w.pending, shard)
			w.ring()
		}
	}
}

// Close ends all present and future calls of Wait. It returns false if the Waiters were
// already closed.
func (ws *Waiters) Close() bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.closed {
		return false
	}
	ws.closed = true
	for w := range ws.all {
		w.ring()
	}
	return true
}

// Closed reports whether Close has been called.
func (ws *Waiters) Closed() bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.closed
}

func (w *waiter) ring() {
	select {
	case w.signal <- struct{}{}:
	default:
	}
}
