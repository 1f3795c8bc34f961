package redisstore

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/tickless/tickless/durable/store"
)

// A combiner sends a shard's commands in batches: commands that arrive while a batch is
// under way form the next one. A single goroutine never waits for others. (With 32
// goroutines this doubles the throughput: BenchmarkSchedule/by=one.)
type combiner struct {
	s  *Store
	mu sync.Mutex
	// busy is whether a batch is under way. queue has the waiting commands.
	busy  bool
	queue []*change
}

const (
	// maxItems and maxBytes are about the most that one script gets, which takes a
	// server a millisecond or so. While it runs a script, the server does nothing else: a
	// script with 250 tasks takes 1 to 3 ms, one with 1000 took up to 11 ms.
	maxItems = store.MaxBatch
	maxBytes = 512 << 10
	// maxQueued is the maximum number of waiting commands.
	maxQueued = 1 << 14
)

// change carries out a command, together with others.
func (b *combiner) change(ctx context.Context, x *change) ([]store.Outcome, error) {
	x.done = make(chan struct{})
	b.mu.Lock()
	if len(b.queue) >= maxQueued {
		b.mu.Unlock()
		return nil, store.ErrBusy
	}
	b.queue = append(b.queue, x)
	lead := !b.busy
	b.busy = true
	b.mu.Unlock()
	if lead {
		if ctx.Done() == nil {
			b.lead(ctx)
		} else {
			go b.lead(context.WithoutCancel(ctx))
		}
	}
	select {
	case <-x.done:
		return x.out, x.err
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.queue, x)
	if i < 0 {
		return nil, ctx.Err() // the change was already sent
	}
	b.queue = slices.Delete(b.queue, i, i+1)
	return nil, explain(&unsentError{ctx.Err()})
}

// lead sends a batch of waiting commands, and leaves the others, including those that
// arrive later, to another goroutine.
func (b *combiner) lead(ctx context.Context) {
	b.mu.Lock()
	some := b.batchLocked()
	b.mu.Unlock()
	if len(some) > 0 {
		b.send(ctx, some)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) > 0 {
		go b.lead(ctx)
	} else {
		b.busy = false
	}
}

// batchLocked removes from the queue the commands of the next script. They have different
// senders. Imports, commands that schedule tasks, and other commands go in separate
// scripts, because a server without free memory refuses the first two.
func (b *combiner) batchLocked() (some []*change) {
	items, bytes, senders := 0, 0, make(map[string]bool)
	b.queue = slices.DeleteFunc(b.queue, func(x *change) bool {
		if len(some) > 0 && (x.class() != some[0].class() || items+x.items > maxItems || bytes+x.bytes > maxBytes || senders[x.sender]) {
			return false
		}
		some, senders[x.sender] = append(some, x), true
		items, bytes = items+max(1, x.items), bytes+x.bytes
		return true
	})
	return some
}

func (b *combiner) send(ctx context.Context, some []*change) {
	v, err := b.s.run(ctx, b.s.callOf(some))
	answered(some, v, err)
	if len(some) > 1 && errors.Is(some[0].err, store.ErrFull) {
		// Changes that were already carried out are answered even by a full server.
		for _, x := range some {
			b.send(ctx, []*change{x})
		}
		return
	}
	for _, x := range some {
		close(x.done)
	}
}
