package redisstore

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/tickless/tickless/durable/store"
)

// A combiner sends a shard's commands in batches. Commands that arrive while a batch is
// under way form the next batch.
type combiner struct {
	store *Store
	mu    sync.Mutex
	// sending is true while a batch is under way. queue holds the waiting commands.
	sending bool
	queue   []*pendingCommand
}

const (
	// maxItems and maxBytes limit a batch of several commands. A full batch blocks the
	// server for 1 to 3 ms.
	maxItems = store.MaxBatch
	maxBytes = 512 << 10
	// maxQueued is the maximum number of waiting commands.
	maxQueued = 1 << 14
)

// submit queues a command and waits for its outcomes.
func (b *combiner) submit(ctx context.Context, x *pendingCommand) ([]store.Outcome, error) {
	x.done = make(chan struct{})
	b.mu.Lock()
	if len(b.queue) >= maxQueued {
		b.mu.Unlock()
		return nil, store.ErrBusy
	}
	b.queue = append(b.queue, x)
	startSending := !b.sending
	b.sending = true
	b.mu.Unlock()
	if startSending {
		if ctx.Done() == nil {
			b.sendNext(ctx)
		} else {
			go b.sendNext(context.WithoutCancel(ctx))
		}
	}
	select {
	case <-x.done:
		return x.outcomes, x.err
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.queue, x)
	if i < 0 {
		return nil, ctx.Err() // the change was already sent
	}
	b.queue = slices.Delete(b.queue, i, i+1)
	return nil, toStoreError(&unsentError{ctx.Err()})
}

// sendNext sends one batch. If commands remain in the queue, another goroutine sends the
// next batch.
func (b *combiner) sendNext(ctx context.Context) {
	b.mu.Lock()
	batch := b.dequeueBatch()
	b.mu.Unlock()
	if len(batch) > 0 {
		b.sendBatch(ctx, batch)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) > 0 {
		go b.sendNext(ctx)
	} else {
		b.sending = false
	}
}

// dequeueBatch removes the next batch from the queue. The commands of a batch have the
// same class and different senders. The caller holds b.mu.
func (b *combiner) dequeueBatch() (batch []*pendingCommand) {
	items, bytes, senders := 0, 0, make(map[string]bool)
	b.queue = slices.DeleteFunc(b.queue, func(x *pendingCommand) bool {
		if len(batch) > 0 && (x.batchClass() != batch[0].batchClass() || items+x.itemCount > maxItems || bytes+x.recordBytes > maxBytes || senders[x.senderField]) {
			return false
		}
		batch, senders[x.senderField] = append(batch, x), true
		items, bytes = items+max(1, x.itemCount), bytes+x.recordBytes
		return true
	})
	return batch
}

func (b *combiner) sendBatch(ctx context.Context, batch []*pendingCommand) {
	v, err := b.store.runCall(ctx, b.store.batchCall(batch))
	setResults(batch, v, err)
	if len(batch) > 1 && errors.Is(batch[0].err, store.ErrFull) {
		// Send each command alone. An earlier attempt of the batch may have carried out
		// some commands, and these get their outcomes.
		for _, x := range batch {
			b.sendBatch(ctx, []*pendingCommand{x})
		}
		return
	}
	for _, x := range batch {
		close(x.done)
	}
}
