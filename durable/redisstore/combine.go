package redisstore

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/tickless/tickless/durable/store"
)

// A combiner makes batches of a shard's commands that come at the same time: what comes
// while some are under way goes out together with the next ones. A goroutine alone does not
// wait for anybody. (32 goroutines schedule about twice as fast for it:
// BenchmarkSchedule/by=one.)
type combiner struct {
	s  *Store
	mu sync.Mutex
	// busy is how many batches are under way, and queue what waits.
	busy  int
	queue []*change
}

const (
	// maxBusy lets one batch be made while the server has another.
	maxBusy = 2
	// maxItems and maxBytes are about the most that a script gets: what a server takes
	// up in a millisecond or so. It does nothing else while a script runs: 250 tasks
	// take 1 to 3 ms, 1000 took up to 11.
	maxItems = store.MaxBatch
	maxBytes = 512 << 10
	// maxQueued is how many commands may wait, beside those that are sent.
	maxQueued = 1 << 14
)

// change carries a command out, together with others.
func (b *combiner) change(ctx context.Context, x *change) ([]store.Outcome, error) {
	x.done = make(chan struct{})
	b.mu.Lock()
	if len(b.queue) >= maxQueued {
		b.mu.Unlock()
		return nil, store.ErrBusy
	}
	b.queue = append(b.queue, x)
	lead := b.busy < maxBusy
	if lead {
		b.busy++
	}
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
		return nil, ctx.Err() // it was sent
	}
	b.queue = slices.Delete(b.queue, i, i+1)
	return nil, explain(&unsentError{ctx.Err()})
}

// lead sends a batch of what waits, and leaves the rest, and what has come meanwhile, to
// another goroutine.
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
		b.busy--
	}
}

// batchLocked takes from the queue what one script gets, of different senders: all that
// import, or all that schedule, or none of them, since these two a full server refuses.
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
		// Those which were carried out before have an answer all the same.
		for _, x := range some {
			b.send(ctx, []*change{x})
		}
		return
	}
	for _, x := range some {
		close(x.done)
	}
}
