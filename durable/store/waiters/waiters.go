// Package waiters implements Wait for stores: calls sleep until a shard wakes them.
package waiters

import (
	"context"
	"slices"
	"sync"

	"github.com/tickless/tickless/durable/store"
)

// Waiters are the present calls of a store's Wait. The zero Waiters is ready to use.
type Waiters struct {
	mu     sync.Mutex
	calls  map[*waiter]struct{} // the present calls of Wait
	closed bool
}

type waiter struct {
	wakeUp        chan struct{} // contains an element if shards are pending or the Waiters were closed
	shards        []int
	pendingShards []int // shards for which wake must be called; guarded by Waiters.mu
}

// Wait calls wake once for each shard, because something may have changed before. Then it
// calls wake after each Wake of one of the shards. It returns ctx.Err() or store.ErrClosed.
func (ws *Waiters) Wait(ctx context.Context, shards []int, wake func(shard int)) error {
	w := &waiter{wakeUp: make(chan struct{}, 1), shards: shards, pendingShards: slices.Clone(shards)}
	w.wakeUp <- struct{}{}
	ws.mu.Lock()
	if ws.calls == nil {
		ws.calls = make(map[*waiter]struct{})
	}
	ws.calls[w] = struct{}{}
	ws.mu.Unlock()
	defer func() {
		ws.mu.Lock()
		defer ws.mu.Unlock()
		delete(ws.calls, w)
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.wakeUp:
		}
		ws.mu.Lock()
		shardsToWake, closed := w.pendingShards, ws.closed
		w.pendingShards = nil
		ws.mu.Unlock()
		if closed {
			return store.ErrClosed
		}
		for _, shard := range shardsToWake {
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
	for w := range ws.calls {
		if slices.Contains(w.shards, shard) && !slices.Contains(w.pendingShards, shard) {
			w.pendingShards = append(w.pendingShards, shard)
			w.notify()
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
	for w := range ws.calls {
		w.notify()
	}
	return true
}

// Closed reports whether Close has been called.
func (ws *Waiters) Closed() bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.closed
}

func (w *waiter) notify() {
	select {
	case w.wakeUp <- struct{}{}:
	default:
	}
}
