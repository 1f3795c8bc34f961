package memstore

import (
	"context"
	"slices"
	"sync"

	"github.com/tickless/tickless/durable/store"
)

// A waiter is a call of Wait.
type waiter struct {
	signal chan struct{} // has an element if there are shards
	closed chan struct{}

	mu      sync.Mutex
	shards  []int // that it waits for
	pending []int // of these, those to be woken for
}

// Wait calls wake for each of the shards first, so that nothing that came before is
// missed.
func (s *Store) Wait(ctx context.Context, shards []int, wake func(shard int)) error {
	if s.isElsewhere() {
		return errElsewhere
	}
	w := &waiter{signal: make(chan struct{}, 1), closed: make(chan struct{}), shards: shards, pending: slices.Clone(shards)}
	w.signal <- struct{}{}
	s.mu.Lock()
	if s.closed.Load() {
		s.mu.Unlock()
		return store.ErrClosed
	}
	s.waiters[w] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.waiters, w)
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.closed:
			return store.ErrClosed
		case <-w.signal:
		}
		for _, shard := range w.take() {
			wake(shard)
			if ctx.Err() != nil {
				break
			}
		}
	}
}

func (w *waiter) take() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	some := w.pending
	w.pending = nil
	return some
}

// wake wakes all who wait for a shard. The lock of a shard comes before that of the
// Store, and this before that of a waiter.
func (s *Store) wake(shard int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.waiters {
		w.mu.Lock()
		if slices.Contains(w.shards, shard) && !slices.Contains(w.pending, shard) {
			w.pending = append(w.pending, shard)
			select {
			case w.signal <- struct{}{}:
			default:
			}
		}
		w.mu.Unlock()
	}
}
