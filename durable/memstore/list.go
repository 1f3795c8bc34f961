package memstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/machine"
)

// Get returns a task's entry.
func (s *Store) Get(ctx context.Context, shardIndex int, id string) (e store.Entry, err error) {
	callErr := s.withShard(ctx, shardIndex, func(sh *shard, at machine.Moment) {
		err = store.ErrNotFound
		if t := sh.Find(id); t != nil && !t.HasExpired(at.Wall) {
			e, err = machine.CopyEntry(t.Entry), nil
			machine.NotePause(&e, sh.limits)
		}
	})
	return e, cmp.Or(callErr, err)
}

// List returns a page, in O(n log n) for n tasks in the shard.
func (s *Store) List(ctx context.Context, shardIndex int, f store.Filter, c store.Cursor, limit int) (p store.Page, err error) {
	if err := store.CheckList(&f, limit); err != nil {
		return p, err
	}
	err = s.withShard(ctx, shardIndex, func(sh *shard, now machine.Moment) {
		var found []*task
		keepFirst := func(n int) {
			slices.SortFunc(found, func(a, b *task) int { return f.Compare(f.CursorOf(&a.Entry), f.CursorOf(&b.Entry)) })
			found = found[:min(n, len(found))]
		}
		for _, t := range sh.tasks {
			if f.Match(&t.Entry) && !t.HasExpired(now.Wall) && f.Compare(f.CursorOf(&t.Entry), c) > 0 {
				if found = append(found, t); len(found) > 4*limit {
					keepFirst(limit + 1)
				}
			}
		}
		if keepFirst(limit + 1); len(found) > limit {
			found = found[:limit]
			p.Next = f.CursorOf(&found[limit-1].Entry)
		}
		for _, t := range found {
			e := machine.CopyEntry(t.Entry)
			machine.NotePause(&e, sh.limits)
			p.Entries = append(p.Entries, e)
		}
	})
	return p, err
}

// Stats returns the shard's numbers. O(n) in the overdue tasks.
func (s *Store) Stats(ctx context.Context, shardIndex int) (st store.Stats, err error) {
	err = s.withShard(ctx, shardIndex, func(sh *shard, at machine.Moment) { st = machine.Stats(sh, at.Wall) })
	return st, err
}

// Workers returns the shard's workers. O(n) for n senders.
func (s *Store) Workers(ctx context.Context, shardIndex int) (workers []store.Worker, err error) {
	err = s.withShard(ctx, shardIndex, func(sh *shard, at machine.Moment) { workers = machine.Workers(sh, at.Wall) })
	return workers, err
}

// Repair only counts the tasks. Every command is atomic, so nothing can be damaged.
func (s *Store) Repair(ctx context.Context, shardIndex int) (r store.Repair, err error) {
	err = s.withShard(ctx, shardIndex, func(sh *shard, _ machine.Moment) { r.Looked = int64(len(sh.tasks)) })
	return r, err
}
