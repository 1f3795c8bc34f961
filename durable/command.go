package durable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// An Outcome says what a command did with a task. [store.Outcome] documents the values.
type Outcome = store.Outcome

const (
	Unknown   = store.Unknown   // the effect of the command is unknown
	Absent    = store.Absent    // no such task; no effect
	Created   = store.Created   // the new task is pending; the key had none
	Replaced  = store.Replaced  // the new task is pending; it replaced a pending or dead one
	Kept      = store.Kept      // the key's existing task is unchanged
	Following = store.Following // the task is running, and runs again at its new time
	Moved     = store.Moved     // the pending task has a new time
	Removed   = store.Removed   // the task is deleted and will not run
	Stopping  = store.Stopping  // the task is running and was asked to stop
	Once      = store.Once      // the paused task runs once at its new time, and stays paused
	Changed   = store.Changed   // the task has another version than IfVersion; no effect
)

// A command is a call that changes tasks. It sends the items of each shard in chunks,
// one after the other, and stops at a chunk that is not answered.
//
// [UnknownError.Again] sends that chunk again with the same stamp, so that the store
// carries it out only once.
type command struct {
	client     *Client
	template   store.Command // what each chunk sends, without items
	deadline   time.Time     // of the first call's context; zero: none
	repeatLock chan struct{} // full while a goroutine is in repeat; nil before the first UnknownError

	// The goroutine that carries out the command owns the fields below.

	sender      *sender
	parts       []*shardPart // one for each shard with items
	partByShard []*shardPart // the parts by shard; nil for a shard without items
	outcomes    []Outcome    // by index in the call
	errs        []error      // by index in the call; nil if the item was carried out
}

// A shardPart has the items of a command for one shard.
type shardPart struct {
	shard                int
	chunks               []chunk
	firstUnansweredIndex int // the index of the first chunk that has not been answered
}

type chunk struct {
	stamp       store.Stamp // zero if the chunk was never sent
	items       []store.Item
	indexes     []int // the items' indexes in the call
	recordBytes int   // size of the records
}

// maxChunkBytes is the maximum size of the records in a chunk. A store takes about a
// millisecond for such a chunk.
const maxChunkBytes = 512 << 10

// newCommand returns a command for n items. The caller adds the items.
func (c *Client) newCommand(ctx context.Context, template store.Command, n int) *command {
	x := &command{client: c, template: template, outcomes: make([]Outcome, n), errs: make([]error, n)}
	x.deadline, _ = ctx.Deadline()
	return x
}

// addItem adds an item to a chunk of its shard. index is the item's position in the
// call.
func (x *command) addItem(index int, item store.Item) {
	recordBytes := len(item.Task.Record)
	if item.Entry != nil {
		recordBytes = len(item.Entry.Record)
	}
	x.addToShard(x.client.shardOf(item.ID), index, recordBytes, []store.Item{item})
}

func (x *command) addToShard(shard, index, recordBytes int, items []store.Item) {
	p := x.partForShard(shard)
	n := len(p.chunks)
	if n == 0 || len(p.chunks[n-1].items) == store.MaxBatch || p.chunks[n-1].recordBytes+recordBytes > maxChunkBytes {
		// Expect the items to be spread evenly over the shards.
		itemCapacity := min(store.MaxBatch, len(x.errs)/len(x.partByShard)*5/4+1)
		p.chunks = append(p.chunks, chunk{items: make([]store.Item, 0, itemCapacity), indexes: make([]int, 0, itemCapacity)})
		n++
	}
	lastChunk := &p.chunks[n-1]
	lastChunk.items = append(lastChunk.items, items...)
	lastChunk.indexes = append(lastChunk.indexes, index)
	lastChunk.recordBytes += recordBytes
}

func (x *command) partForShard(shard int) *shardPart {
	if x.partByShard == nil {
		x.partByShard = make([]*shardPart, x.client.store.Shards())
	}
	if x.partByShard[shard] == nil {
		x.partByShard[shard] = &shardPart{shard: shard}
		x.parts = append(x.parts, x.partByShard[shard])
	}
	return x.partByShard[shard]
}

func (c *Client) doOneItem(ctx context.Context, template store.Command, item store.Item) (Outcome, error) {
	x := c.newCommand(ctx, template, 1)
	x.addItem(0, item)
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
		x.sender = x.client.senders.takeSender()
	}
	if unknownErr := x.sendParts(ctx); unknownErr != nil {
		if x.repeatLock == nil {
			x.repeatLock = make(chan struct{}, 1)
		}
		return slices.Clone(x.outcomes), &UnknownError{Err: unknownErr, again: x.repeat}
	}
	x.client.senders.putSender(x.sender)
	x.sender = nil
	return x.outcomes, cmp.Or(x.errs...)
}

// repeat sends the command again. If several goroutines call it, they take turns.
func (x *command) repeat(ctx context.Context) ([]Outcome, error) {
	select {
	case x.repeatLock <- struct{}{}:
		defer func() { <-x.repeatLock }()
	case <-ctx.Done():
		return make([]Outcome, len(x.outcomes)), &UnknownError{Err: ctx.Err(), again: x.repeat}
	}
	out, err := x.do(ctx)
	return slices.Clone(out), err
}

// maxShardsAtOnce is how many shards a command is sent to at the same time.
const maxShardsAtOnce = 16

// sendParts sends the parts, several at a time. It returns an error if the effect of a
// part is unknown.
func (x *command) sendParts(ctx context.Context) (unknownErr error) {
	if len(x.parts) == 1 {
		return x.sendPart(ctx, x.parts[0])
	}
	errs := make([]error, len(x.parts))
	partIndexes := make(chan int)
	var goroutines sync.WaitGroup
	for range min(maxShardsAtOnce, len(x.parts)) {
		goroutines.Go(func() {
			for i := range partIndexes {
				errs[i] = x.sendPart(ctx, x.parts[i])
			}
		})
	}
	for i := range x.parts {
		partIndexes <- i
	}
	close(partIndexes)
	goroutines.Wait()
	return cmp.Or(errs...)
}

// sendPart sends the chunks of a part that have no answer. It returns an error if the
// effect of a chunk is unknown.
func (x *command) sendPart(ctx context.Context, p *shardPart) (unknownErr error) {
	for ; p.firstUnansweredIndex < len(p.chunks); p.firstUnansweredIndex++ {
		ch := &p.chunks[p.firstUnansweredIndex]
		sentBefore := ch.stamp.Sender != ""
		out, err := x.sendChunk(ctx, p.shard, ch)
		if err != nil && ch.stamp.Sender != "" && !surelyNotDone(err, sentBefore) {
			if sentBefore {
				err = partlyDoneError{err}
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

// surelyNotDone reports whether a chunk that failed with err certainly had no effect.
// This is true of ErrLate. It is true of ErrNotDone only if the chunk was not sent
// before.
func surelyNotDone(err error, sentBefore bool) bool {
	return errors.Is(err, store.ErrLate) || !sentBefore && errors.Is(err, ErrNotDone)
}

// A partlyDoneError is the error of a command that may have had an effect, although err
// says that it had none: it was sent before, or to other shards. It hides ErrNotDone,
// ErrBusy and ErrFull.
type partlyDoneError struct{ err error }

func (e partlyDoneError) Error() string      { return e.err.Error() }
func (e partlyDoneError) As(target any) bool { return errors.As(e.err, target) }

func (e partlyDoneError) Is(target error) bool {
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
	if c.After == nil {
		return x.client.store.Change(ctx, shard, ch.stamp, c)
	}
	c.After = new(store.Entry) // its own: after an error the store may still write it
	out, err := x.client.store.Change(ctx, shard, ch.stamp, c)
	if err == nil {
		*x.template.After = *c.After
	}
	return out, err
}

// A store recognizes a repeated command by its sender and number. It remembers only the
// latest command of each sender: see [store.Stamp]. So each call uses a sender of its
// own until the store has answered.

// A sender numbers the commands that it sends. One call at a time owns it, but may send to
// several shards at the same time.
type sender struct {
	name              string
	lastCommandNumber atomic.Int64
}

func (s *sender) nextStamp() store.Stamp {
	return store.Stamp{Sender: s.name, Number: s.lastCommandNumber.Add(1)}
}

// A senderPool has the free senders of a Client.
type senderPool struct {
	clientName   string     // prefix of the senders' names
	mu           sync.Mutex // guards freeSenders and createdCount
	freeSenders  []*sender
	createdCount int64 // how many senders were created
}

func (s *senderPool) takeSender() *sender {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.freeSenders); n > 0 {
		freeSender := s.freeSenders[n-1]
		s.freeSenders = s.freeSenders[:n-1]
		return freeSender
	}
	s.createdCount++
	return &sender{name: s.clientName + "." + strconv.FormatInt(s.createdCount, 36)}
}

func (s *senderPool) putSender(freed *sender) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freeSenders = append(s.freeSenders, freed)
}

// newUniqueName returns a unique name for a Client, or for a Run of a Worker. Their
// senders' names begin with it.
func newUniqueName() string {
	return strconv.Itoa(os.Getpid()) + "-" + strconv.FormatUint(rand.Uint64(), 36)
}
