package diskstore

import (
	"context"
	"slices"
	"sync"
)

// A waiter is a call of Wait.
type waiter struct {
	shards []int
	signal chan struct{} // has an element if there are any to be woken for

	mu      sync.Mutex
	pending []int // of the shards, those to be woken for
}

// Wait calls wake for each of the shards first, so that nothing that came before is
// missed.
func (s *Store) Wait(ctx context.Context, shards []int, wake func(shard int)) error {
	w := &waiter{shards: shards, signal: make(chan struct{}, 1)}
	s.waiting.Lock()
	s.waiters[w] = struct{}{}
	s.waiting.Unlock()
	defer func() {
		s.waiting.Lock()
		defer s.waiting.Unlock()
		delete(s.waiters, w)
	}()
	for _, shard := range shards {
		w.add(shard)
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.over:
			return s.why()
		case <-w.signal:
		}
		for _, shard := range w.take() {
			if wake(shard); ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
}

func (w *waiter) add(shard int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.Contains(w.shards, shard) && !slices.Contains(w.pending, shard) {
		w.pending = append(w.pending, shard)
		select {
		case w.signal <- struct{}{}:
		default:
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

// wake wakes all who wait for a shard.
func (s *Store) wake(shard int) {
	s.waiting.Lock()
	defer s.waiting.Unlock()
	for w := range s.waiters {
		w.add(shard)
	}
}
