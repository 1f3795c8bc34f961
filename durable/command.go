package durable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A command is a call that changes tasks. It sends the items of each shard in chunks,
// one after the other, and stops at a chunk that is not answered.
//
// [UnknownError.Again] sends that chunk again with the same stamp, so that the store
// carries it out only once.
type command struct {
	client    *Client
	template  store.Command // without items
	deadline  time.Time     // of the first call's context; zero: none
	repeating chan struct{} // full while a goroutine repeats the command; nil before its first UnknownError

	// The goroutine that carries out the command owns the fields below.

	sender   *sender
	parts    []*shardPart // one for each shard with items
	byShard  []*shardPart // the parts by shard; nil for a shard without items
	outcomes []Outcome    // by index in the call
	errs     []error      // by index in the call; nil if the item was carried out
}

// A shardPart has the items of a command for one shard.
type shardPart struct {
	shard           int
	chunks          []chunk
	firstUnanswered int // the index of the first chunk that has not been answered
}

type chunk struct {
	stamp   store.Stamp // zero if the chunk was never sent
	items   []store.Item
	indexes []int // the items' indexes in the call
	bytes   int   // size of the records
}

// chunkBytes is the maximum size of the records in a chunk. A store takes about a
// millisecond for such a chunk.
const chunkBytes = 512 << 10

// newCommand returns a command for n items. The caller adds the items.
func (c *Client) newCommand(ctx context.Context, template store.Command, n int) *command {
	x := &command{client: c, template: template, outcomes: make([]Outcome, n), errs: make([]error, n)}
	x.deadline, _ = ctx.Deadline()
	return x
}

// add adds an item. index is the item's position in the call.
func (x *command) add(index int, item store.Item) {
	bytes := len(item.Task.Record)
	if item.Entry != nil {
		bytes = len(item.Entry.Record)
	}
	x.addTo(x.client.shardOf(item.ID), index, bytes, []store.Item{item})
}

func (x *command) addTo(shard, index, bytes int, items []store.Item) {
	p := x.part(shard)
	n := len(p.chunks)
	if n == 0 || len(p.chunks[n-1].items) == store.MaxBatch || p.chunks[n-1].bytes+bytes > chunkBytes {
		// Expect the items to be spread evenly over the shards.
		capacity := min(store.MaxBatch, len(x.errs)/len(x.byShard)*5/4+1)
		p.chunks = append(p.chunks, chunk{items: make([]store.Item, 0, capacity), indexes: make([]int, 0, capacity)})
		n++
	}
	last := &p.chunks[n-1]
	last.items = append(last.items, items...)
	last.indexes = append(last.indexes, index)
	last.bytes += bytes
}

// part returns the part for a shard, and creates it if necessary.
func (x *command) part(shard int) *shardPart {
	if x.byShard == nil {
		x.byShard = make([]*shardPart, x.client.store.Shards())
	}
	if x.byShard[shard] == nil {
		x.byShard[shard] = &shardPart{shard: shard}
		x.parts = append(x.parts, x.byShard[shard])
	}
	return x.byShard[shard]
}

func (c *Client) doOne(ctx context.Context, template store.Command, item store.Item) (Outcome, error) {
	x := c.newCommand(ctx, template, 1)
	x.add(0, item)
	out, err := x.do(ctx)
	if len(out) == 0 {
		return Unknown, err
	}
	return out[0], err
}

// do sends all chunks that have no answer. It returns the outcomes and the first error,
// or an UnknownError if the effect of a chunk is unknown.
func (x *command) do(ctx context.Context) ([]Outcome, error) {
	if x.sender == nil {
		x.sender = x.client.senders.take()
	}
	if unknown := x.send(ctx); unknown != nil {
		if x.repeating == nil {
			x.repeating = make(chan struct{}, 1)
		}
		return slices.Clone(x.outcomes), &UnknownError{Err: unknown, again: x.again}
	}
	x.client.senders.put(x.sender)
	x.sender = nil
	return x.outcomes, cmp.Or(x.errs...)
}

// again repeats the command. If several goroutines call it, they take turns.
func (x *command) again(ctx context.Context) ([]Outcome, error) {
	select {
	case x.repeating <- struct{}{}:
		defer func() { <-x.repeating }()
	case <-ctx.Done():
		return make([]Outcome, len(x.outcomes)), &UnknownError{Err: ctx.Err(), again: x.again}
	}
	out, err := x.do(ctx)
	return slices.Clone(out), err
}

// maxShardsAtOnce is how many shards a command is sent to at the same time.
const maxShardsAtOnce = 16

// send sends the parts, several at a time. It returns an error if the effect of a part
// is unknown.
func (x *command) send(ctx context.Context) (unknown error) {
	if len(x.parts) == 1 {
		return x.sendPart(ctx, x.parts[0])
	}
	errs := make([]error, len(x.parts))
	nextPart := make(chan int)
	var all sync.WaitGroup
	for range min(maxShardsAtOnce, len(x.parts)) {
		all.Go(func() {
			for i := range nextPart {
				errs[i] = x.sendPart(ctx, x.parts[i])
			}
		})
	}
	for i := range x.parts {
		nextPart <- i
	}
	close(nextPart)
	all.Wait()
	return cmp.Or(errs...)
}

// sendPart sends the chunks of a part that have no answer. It returns an error if the
// effect of a chunk is unknown.
func (x *command) sendPart(ctx context.Context, p *shardPart) (unknown error) {
	for ; p.firstUnanswered < len(p.chunks); p.firstUnanswered++ {
		ch := &p.chunks[p.firstUnanswered]
		sentBefore := ch.stamp.Sender != ""
		out, err := x.sendChunk(ctx, p.shard, ch)
		if err != nil && ch.stamp.Sender != "" && !surelyNotDone(err, sentBefore) {
			if sentBefore {
				err = repeatError{err}
			}
			return err
		}
		for i, index := range ch.indexes {
			x.errs[index] = clientError(err)
			if i < len(out) {
				x.outcomes[index] = out[i]
			}
		}
	}
	return nil
}

// surelyNotDone reports whether a chunk that failed with err has never had an effect.
// ErrLate says exactly that. ErrNotDone says it only if the chunk was not sent before.
func surelyNotDone(err error, sentBefore bool) bool {
	return errors.Is(err, store.ErrLate) || !sentBefore && errors.Is(err, ErrNotDone)
}

// A repeatError is the error of a repeated command. It hides ErrNotDone, ErrBusy and
// ErrFull, because the command may have had its effect the first time.
type repeatError struct{ err error }

func (e repeatError) Error() string      { return e.err.Error() }
func (e repeatError) As(target any) bool { return errors.As(e.err, target) }

func (e repeatError) Is(target error) bool {
	switch target {
	case ErrNotDone, ErrBusy, ErrFull:
		return false
	}
	return errors.Is(e.err, target)
}

func (x *command) sendChunk(ctx context.Context, shard int, ch *chunk) ([]Outcome, error) {
	if ch.stamp.Sender == "" {
		var until store.Time
		if !x.deadline.IsZero() {
			now, err := x.client.store.Now(ctx, shard)
			if err != nil { // nothing was sent yet
				return nil, fmt.Errorf("%w: %w", ErrNotDone, err)
			}
			until = max(1, now.Add(time.Until(x.deadline)))
		}
		ch.stamp = x.sender.nextStamp()
		ch.stamp.Until = until
	}
	c := x.template
	c.Items = ch.items
	return x.client.store.Change(ctx, shard, ch.stamp, c)
}
