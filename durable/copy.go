package durable

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A Copied says what [Copy] or [Import] has done.
type Copied struct {
	New  int // tasks that are in the store now, and were not
	Kept int // tasks whose key the store had already: it keeps its own
}

// ErrChanged is returned by [Copy] and [Export] if the source was used meanwhile. What was
// read is where it was to go, but may lack tasks, or have some that are gone.
var ErrChanged = errors.New("durable: the source was used while it was read: stop its workers and clients, empty the destination, and repeat")

// Copy copies all tasks of one store into another, which may be of another kind and have
// another number of shards: pending ones with what has been tried, repeating ones, and
// dead letters. The source stays as it is.
//
// If dst is src, the error is an [ErrInvalid], and nothing was changed: it would only be
// paused. Copy sees that of the same value, and where dst has a method
// Same(context.Context, store.Store) bool that says so, as package redisstore's does.
//
// It pauses dst, and leaves it paused, so that nothing runs there before everything is
// there, and nothing runs twice if Copy has to be repeated after an error: what dst has
// already it keeps. But if src was used meanwhile, repeat into a store that was emptied:
// what src has finished, cancelled or changed since is still in dst as it was, and would run
// there. Tasks of dst's own stay as well, and wait as long. Call [Client.Resume] when the
// source is out of use, and after an error not before the deadline of the context that Copy
// had then or, without one, a minute has passed: until then what was sent may still arrive.
//
// The source must be out of use: stop its workers and clients first. A task that is
// running all the same is copied as one that is due at once, or as what it was scheduled
// as meanwhile; one that was cancelled meanwhile is left out. Senders' commands,
// counters and whether the source is paused are not copied. It costs what [Client.List]
// does, and O(n) to write.
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

// same reports whether two stores are known to be one.
func same(ctx context.Context, a, b store.Store) bool {
	if reflect.ValueOf(a).Comparable() && a == b {
		return true
	}
	s, ok := a.(interface {
		Same(context.Context, store.Store) bool
	})
	return ok && s.Same(ctx, b)
}

// forEach calls f with the entries that a copy of a store has.
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

// importing puts entries into a store, in batches for each shard.
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

// flush sends what has not been sent.
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

// maxOnTheWay is for how long a command may be on its way whose context has no deadline:
// one that comes when its tasks are done would have them run again.
const maxOnTheWay = time.Minute

// change sends a command. One that is refused since it came too late was not carried out,
// and is sent again if the context has time left.
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
