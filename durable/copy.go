package durable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// A Copied is the result of [Copy] or [Import].
type Copied struct {
	Added int // tasks added to the store
	Kept  int // tasks not copied because the store already had their key
}

// ErrChanged is returned by [Copy] and [Export] if the source was used during the call.
// All tasks that were read have been written. Other tasks may be missing, and some may
// no longer exist in the source.
var ErrChanged = errors.New("durable: the source was used during the copy: stop its workers and clients, empty the destination, and repeat")

// Copy copies all tasks from src to dst: pending tasks with their attempts, repeating
// tasks, and dead letters. The stores may have different types and numbers of shards.
// src does not change.
//
// Stop the workers and clients of src first. If a task runs nevertheless, Copy copies
// it as due at once. If it was also scheduled again, Copy copies it with its new time;
// if it was cancelled, Copy omits it. Counters, limits and a pause are not copied. dst
// does not know which commands src has already carried out.
//
// Copy pauses dst and leaves it paused. So no task runs before all are copied, and none
// runs twice if Copy is repeated after an error. Tasks that dst already has do not
// change, and wait too. Call [Client.Resume] when src is out of use. After an error,
// first wait for a minute: until then a command of Copy may still arrive.
//
// If src was used during or after Copy, empty dst before repeating Copy. Otherwise dst
// would run tasks that src has finished, cancelled or changed since.
//
// If dst and src are the same value, Copy changes nothing and returns an [ErrInvalid].
// If they are two values for the same file or server, Copy only pauses the store. The
// cost is that of [Client.List] and of O(n) writes.
func Copy(ctx context.Context, dst, src store.Store) (Copied, error) {
	to, from := New(dst), New(src)
	if dst == src {
		return Copied{}, invalidError("Copy: the destination is the source")
	}
	c, err := newImporter(ctx, to)
	if err != nil {
		return Copied{}, err
	}
	err = forEachEntry(ctx, from, c.add)
	if err == nil || errors.Is(err, ErrChanged) {
		err = errors.Join(c.flush(ctx), err)
	}
	return c.copied, err
}

// forEachEntry calls f with each entry that a copy of the store contains. It returns
// ErrChanged if the store was used meanwhile.
func forEachEntry(ctx context.Context, c *Client, f func(context.Context, *store.Entry) error) error {
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
			continue // the task was cancelled
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

// An importer sends entries to a store, in batches.
type importer struct {
	dst    *Client
	items  []store.Item // collected, not sent yet
	bytes  int          // size of their records
	copied Copied       // the result so far
}

const (
	// importTimeout is how long an import may take to reach the store. The store
	// refuses a later import: its tasks may have run already, and would run again.
	importTimeout = time.Minute
	// importBytes is the size of the collected records at which they are sent.
	importBytes = maxShardsAtOnce * chunkBytes
)

func newImporter(ctx context.Context, dst *Client) (*importer, error) {
	if err := dst.Pause(ctx); err != nil {
		return nil, fmt.Errorf("durable: pausing the destination: %w", err)
	}
	return &importer{dst: dst}, nil
}

func (c *importer) add(ctx context.Context, e *store.Entry) error {
	c.items = append(c.items, store.Item{ID: e.ID, Entry: e})
	c.bytes += len(e.Record)
	if len(c.items) < store.MaxBatch*min(c.dst.store.Shards(), maxShardsAtOnce) && c.bytes < importBytes {
		return nil
	}
	return c.flush(ctx)
}

func (c *importer) flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, importTimeout)
	defer cancel()
	x := c.dst.newCommand(ctx, store.Command{Op: store.Import}, len(c.items))
	for i, item := range c.items {
		x.add(i, item)
	}
	c.items, c.bytes = nil, 0
	outcomes, err := x.do(ctx)
	for _, o := range outcomes {
		switch o {
		case Created:
			c.copied.Added++
		case Kept:
			c.copied.Kept++
		}
	}
	return err
}
