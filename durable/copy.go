package durable

import (
	"context"
	"fmt"

	"github.com/tickless/tickless/durable/store"
)

// Copy copies all tasks of one store into another, which may be of another kind and have
// another number of shards: pending ones with what has been tried, and dead letters.
// What dst has already it keeps, so that Copy may be called again after an error. It
// returns how many tasks were copied.
//
// It is for stores that nothing else uses meanwhile. A task that is running is copied as
// one that is due at once, or at the time for which it was scheduled again, but then as
// it was before. O(n).
func Copy(ctx context.Context, dst, src store.Store) (int, error) {
	c := &copying{dst: dst, lane: lane{sender: newName()}, batches: make([][]store.Item, dst.Shards())}
	from := New(src)
	for e, err := range from.entries(ctx, store.Filter{}) {
		if err != nil {
			return c.copied, err
		}
		shard := store.ShardOf(e.ID, dst.Shards())
		c.batches[shard] = append(c.batches[shard], store.Item{ID: e.ID, Entry: &e})
		if len(c.batches[shard]) == store.MaxBatch {
			if err := c.send(ctx, shard); err != nil {
				return c.copied, err
			}
		}
	}
	for shard := range c.batches {
		if err := c.send(ctx, shard); err != nil {
			return c.copied, err
		}
	}
	return c.copied, nil
}

// copying is a call of Copy.
type copying struct {
	dst     store.Store
	lane    lane
	batches [][]store.Item // of each shard of dst
	copied  int
}

func (c *copying) send(ctx context.Context, shard int) error {
	items := c.batches[shard]
	if len(items) == 0 {
		return nil
	}
	c.batches[shard] = nil
	out, err := c.dst.Change(ctx, shard, c.lane.next(), store.Command{Op: store.Import, Items: items})
	if err != nil {
		return fmt.Errorf("durable: copying into shard %d: %w", shard, err)
	}
	for _, o := range out {
		if o == Created {
			c.copied++
		}
	}
	return nil
}
