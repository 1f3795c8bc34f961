package durable

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A Copied is the result of [Copy] or [Import].
type Copied struct {
	New  int // tasks added to the store
	Kept int // tasks not copied because the store already had their key
}

// ErrChanged is returned by [Copy] and [Export] if the source was used during the call.
// The tasks that were read have been written, but some may be missing, and some may no
// longer exist in the source.
var ErrChanged = errors.New("durable: the source was used during the copy: stop its workers and clients, empty the destination, and repeat")

// Copy copies all tasks from src to dst: pending tasks with their attempts, repeating
// tasks, and dead letters. The stores may have different types and numbers of shards.
// src does not change.
//
// Stop the workers and clients of src first. If a task runs nevertheless, Copy copies
// it as due at once, or with the time for which it was scheduled again; it omits a task
// that is running and cancelled. The commands of senders, the counters and the pause of
// src are not copied.
//
// Copy pauses dst and leaves it paused, so that no task runs before all are copied, and
// none runs twice if Copy is repeated after an error. Tasks that dst already has do not
// change, and wait too. Call [Client.Resume] when src is out of use. After an error,
// first wait until the deadline of Copy's context or, without a deadline, one minute
// has passed: until then a command may still arrive.
//
// If src was used during or after Copy, empty dst before repeating Copy. Otherwise dst
// would run tasks that src has finished, cancelled or changed meanwhile.
//
// Copy returns an [ErrInvalid] and changes nothing if dst is src. It recognizes the
// same value, and stores whose method Same(context.Context, store.Store) bool says so,
// as package redisstore's does. The cost is that of [Client.List], and O(n) writes.
func Copy(ctx context.Context, dst, src store.Store) (Copied, error) {
	if same(ctx, New(dst).Store(), New(src).Store()) { // New panics if one is nil
		return Copied{}, invalid("the source and the destination of Copy are the same store")
	}
	c, err := newImporting(ctx, dst)
	if err != nil {
		return Copied{}, err
	}
	err = forEach(ctx, src, c.add)
	if err == nil || errors.Is(err, ErrChanged) {
		err = errors.Join(c.flush(ctx), err)
	}
	return c.done, err
}

// same reports whether a and b are known to be the same store.
func same(ctx context.Context, a, b store.Store) bool {
	if reflect.ValueOf(a).Comparable() && a == b {
		return true
	}
	s, ok := a.(interface {
		Same(context.Context, store.Store) bool
	})
	return ok && s.Same(ctx, b)
}

// forEach calls f with each entry that a copy of the store contains.
func forEach(ctx context.Context, src store.Store, f func(context.Context, *store.Entry) error) error {
	c := New(src)
	before, err := c.Stats(ctx)
	if err != nil {
		return err
	}
	var seen [store.Past + 1]int64
	for e, err := range c.entries(ctx, store.Filter{}, store.Cursor{}, 256) {
		if err != nil {
			return err
		}
		seen[e.State]++
		if e.Stopping && !e.Following {
			continue // it is gone with its attempt
		}
		if err := f(ctx, &e); err != nil {
			return err
		}
	}
	after, err := c.Stats(ctx)
	if err != nil {
		return err
	}
	for _, st := range []Stats{before, after} {
		if st.Pending != seen[store.Pending] || st.Running != seen[store.Running] || st.Dead != seen[store.Dead] || st.Counters != before.Counters {
			return ErrChanged
		}
	}
	return nil
}

// importing writes entries to a store, in batches for each shard.
type importing struct {
	dst     store.Store
	lane    lane
	batches []batch
	done    Copied
}

type batch struct {
	items []store.Item
	bytes int
}

func newImporting(ctx context.Context, dst store.Store) (*importing, error) {
	if err := New(dst).Pause(ctx); err != nil {
		return nil, fmt.Errorf("durable: pausing the destination: %w", err)
	}
	return &importing{dst: dst, lane: lane{sender: newName()}, batches: make([]batch, dst.Shards())}, nil
}

func (c *importing) add(ctx context.Context, e *store.Entry) error {
	shard := store.ShardOf(e.ID, len(c.batches))
	b := &c.batches[shard]
	b.items = append(b.items, store.Item{ID: e.ID, Entry: e})
	b.bytes += len(e.Record)
	if len(b.items) < store.MaxBatch && b.bytes < maxBytes {
		return nil
	}
	return c.send(ctx, shard)
}

// flush sends the batches that are not sent yet.
func (c *importing) flush(ctx context.Context) error {
	for shard := range c.batches {
		if err := c.send(ctx, shard); err != nil {
			return err
		}
	}
	return nil
}

func (c *importing) send(ctx context.Context, shard int) error {
	items := c.batches[shard].items
	if len(items) == 0 {
		return nil
	}
	c.batches[shard] = batch{}
	out, err := c.change(ctx, shard, store.Command{Op: store.Import, Items: items})
	if err != nil {
		return fmt.Errorf("durable: copying into shard %d: %w", shard, err)
	}
	for _, o := range out {
		if o == Created {
			c.done.New++
		} else {
			c.done.Kept++
		}
	}
	return nil
}

// maxOnTheWay is how long a command without a deadline may take to arrive. A command
// that arrived after its tasks have finished would run them again.
const maxOnTheWay = time.Minute

// change sends a command. It repeats a command that the store refused because it
// arrived too late, if the context has time left. Such a command had no effect.
func (c *importing) change(ctx context.Context, shard int, command store.Command) ([]store.Outcome, error) {
	for {
		now, err := c.dst.Now(ctx, shard)
		if err != nil {
			return nil, err
		}
		left := maxOnTheWay
		deadline, ends := ctx.Deadline()
		if ends {
			left = time.Until(deadline)
		}
		stamp := c.lane.next()
		stamp.Until = max(1, now.Add(left))
		out, err := c.dst.Change(ctx, shard, stamp, command)
		switch {
		case !errors.Is(err, store.ErrLate):
			return out, err
		case ends:
			return nil, errLate
		}
	}
}
