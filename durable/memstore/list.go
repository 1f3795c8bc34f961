package memstore

import (
	"cmp"
	"context"
	"math"
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

// tasksPerLock is how many tasks List reads before it releases the lock for a moment.
const tasksPerLock = 2048

// A candidate is a task that may belong to the page, with its position in the list.
type candidate struct {
	store.Cursor
	task *task
}

// List returns a page, in O(n log n) for n tasks in the shard. It reads taskList from the
// end, because a removed task is replaced by the last task. List may then read the moved
// task twice, but misses none.
func (s *Store) List(ctx context.Context, shardIndex int, f store.Filter, c store.Cursor, limit int) (p store.Page, err error) {
	if err := store.CheckList(&f, limit); err != nil {
		return p, err
	}
	var found []candidate
	var pageFull bool
	var pageEnd store.Cursor
	keepFirst := func(n int) { // keeps the first n of found
		slices.SortFunc(found, func(a, b candidate) int { return f.Compare(a.Cursor, b.Cursor) })
		found = slices.Compact(found) // a task that moved in taskList was read twice
		found = found[:min(n, len(found))]
	}
	for end, more := math.MaxInt, true; more; {
		err := s.withShard(ctx, shardIndex, func(sh *shard, now machine.Moment) {
			end = min(end, len(sh.taskList))
			chunkStart := max(0, end-tasksPerLock)
			for _, t := range sh.taskList[chunkStart:end] {
				at := f.CursorOf(&t.Entry)
				if f.Match(&t.Entry) && !t.HasExpired(now.Wall) && f.Compare(at, c) > 0 && (!pageFull || f.Compare(at, pageEnd) < 0) {
					found = append(found, candidate{at, t})
				}
			}
			end, more = chunkStart, chunkStart > 0
		})
		if err != nil {
			return p, err
		}
		if keepFirst(limit + 1); len(found) > limit {
			pageFull, pageEnd = true, found[limit].Cursor // later entries are on another page
		}
	}
	if len(found) > limit {
		p.Next, found = found[limit-1].Cursor, found[:limit]
	}
	return p, s.withShard(ctx, shardIndex, func(sh *shard, _ machine.Moment) {
		for _, x := range found {
			// The task may have been removed or moved since List read it.
			if e := &x.task.Entry; sh.tasks[x.ID] == x.task && f.CursorOf(e) == x.Cursor && f.Match(e) {
				p.Entries = append(p.Entries, machine.CopyEntry(*e))
				machine.NotePause(&p.Entries[len(p.Entries)-1], sh.limits)
			}
		}
	})
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
