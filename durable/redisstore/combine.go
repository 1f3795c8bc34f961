package redisstore

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/tickless/tickless/durable/store"
)

// A combiner makes batches of the commands that come at the same time: what comes while
// some are under way goes out together with the next ones. A goroutine alone does not
// wait for anybody. (32 goroutines schedule about twice as fast for it:
// BenchmarkSchedule/by=one.)
//
// There is one for all shards of one server, but one for each shard of a cluster:
// a shard whose server is gone must not hold up others.
type combiner struct {
	s  *Store
	mu sync.Mutex
	// busy is how many batches are under way, and queue what waits: of so many
	// bytes, and others whose callers have given up.
	busy   int
	queue  []*change
	bytes  int
	absent int
}

const (
	// maxBusy lets one pipeline be made while the server has another, and maxTogether
	// is how many scripts' worth there is in one.
	maxBusy     = 2
	maxTogether = 4
	// maxItems and maxBytes are about the most that a script gets: what a server takes
	// up in a millisecond or so. It does nothing else while a script runs: 250 tasks
	// take 1 to 3 ms, 1000 took up to 11.
	maxItems = store.MaxBatch
	maxBytes = 512 << 10
	// maxQueued and maxQueuedBytes are what may wait, beside what is sent.
	maxQueued      = 1 << 14
	maxQueuedBytes = 32 << 20
)

// change carries a command out, together with others.
func (b *combiner) change(ctx context.Context, x *change) ([]store.Outcome, error) {
	x.done = make(chan struct{})
	b.mu.Lock()
	if len(b.queue)-b.absent >= maxQueued || b.bytes > 0 && b.bytes+x.bytes > maxQueuedBytes {
		b.mu.Unlock()
		return nil, store.ErrBusy
	}
	b.queue = append(b.queue, x)
	b.bytes += x.bytes
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
		return nil, b.giveUp(ctx, x)
	}
}

// giveUp is for a caller whose context has ended.
func (b *combiner) giveUp(ctx context.Context, x *change) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if x.sent {
		return ctx.Err()
	}
	x.gone = true
	b.bytes -= x.bytes
	x.args = nil
	if b.absent++; b.absent > maxItems && b.absent > len(b.queue)/2 {
		b.queue = slices.DeleteFunc(b.queue, func(x *change) bool { return x.gone })
		b.absent = 0
	}
	return explain(&unsentError{ctx.Err()})
}

// lead sends what waits, and leaves what has come meanwhile to another goroutine.
func (b *combiner) lead(ctx context.Context) {
	b.mu.Lock()
	var some []*change
	n := 0
	for items, bytes := 0, 0; n < len(b.queue) && items < maxTogether*maxItems && bytes < maxTogether*maxBytes; n++ {
		x := b.queue[n]
		if x.gone {
			b.absent--
			continue
		}
		x.sent = true
		b.bytes -= x.bytes
		items, bytes = items+max(1, x.items), bytes+x.bytes
		some = append(some, x)
	}
	b.queue = b.queue[n:]
	b.mu.Unlock()
	if len(some) > 0 {
		b.send(ctx, batchesOf(some))
	}
	b.mu.Lock()
	if len(b.queue) == 0 {
		b.queue = nil
		b.busy--
		b.mu.Unlock()
		return
	}
	b.mu.Unlock()
	go b.lead(ctx)
}

// batchesOf makes batches that one script gets: of one shard, and all that import, or all
// that schedule, or none of them: these two a full server refuses.
func batchesOf(some []*change) [][]*change {
	if len(some) == 1 {
		return [][]*change{some}
	}
	type kind struct {
		shard *shard
		op    store.Op // Schedule or Import, or 0 for all others
	}
	type size struct{ batch, items, bytes int }
	var batches [][]*change
	last := make(map[kind]size)
	for _, x := range some {
		k := kind{shard: x.shard}
		if x.hungry() {
			k.op = x.op
		}
		l, ok := last[k]
		if !ok || l.items+x.items > maxItems || l.bytes+x.bytes > maxBytes {
			l = size{batch: len(batches)}
			batches = append(batches, nil)
		}
		batches[l.batch] = append(batches[l.batch], x)
		last[k] = size{l.batch, l.items + max(1, x.items), l.bytes + x.bytes}
	}
	return batches
}

func (b *combiner) send(ctx context.Context, batches [][]*change) {
	calls := make([]call, len(batches))
	for i, some := range batches {
		calls[i] = b.s.callOf(some)
	}
	var alone [][]*change
	for i, cmd := range b.s.run(ctx, calls...) {
		some := batches[i]
		answered(some, cmd)
		if len(some) > 1 && errors.Is(some[0].err, store.ErrFull) {
			// Those which were carried out before have an answer all the same.
			for _, x := range some {
				alone = append(alone, []*change{x})
			}
			continue
		}
		for _, x := range some {
			close(x.done)
		}
	}
	if len(alone) > 0 {
		b.send(ctx, alone)
	}
}
