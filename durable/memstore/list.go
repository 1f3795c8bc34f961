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
func (s *Store) Get(ctx context.Context, index int, id string) (e store.Entry, err error) {
	ended := s.in(ctx, index, func(sh *shard, _ machine.Moment) {
		err = store.ErrNotFound
		if t := sh.Find(id); t != nil {
			e, err = machine.CopyEntry(t.Entry), nil
		}
	})
	return e, cmp.Or(ended, err)
}

// atOnce is how many tasks List reads before it releases the lock for a moment.
const atOnce = 2048

// A candidate is a task that may belong to the page, and its position in the list.
type candidate struct {
	store.Cursor
	task *task
}

// List returns a page. O(n log n) in the tasks of the shard. It reads the tasks from
// the last index to the first, because the removal of a task moves the last one to its
// index: so List misses no task that stays.
func (s *Store) List(ctx context.Context, index int, f store.Filter, c store.Cursor, limit int) (p store.Page, err error) {
	if err := store.CheckList(&f, limit); err != nil {
		return p, err
	}
	var found []candidate
	var full bool
	var last store.Cursor
	first := func(n int) { // keeps the first n of found
		slices.SortFunc(found, func(a, b candidate) int { return a.Compare(b.Cursor) })
		found = slices.Compact(found) // a task that moved in sh.all was visited twice
		found = found[:min(n, len(found))]
	}
	for next, more := math.MaxInt, true; more; {
		err := s.in(ctx, index, func(sh *shard, _ machine.Moment) {
			next = min(next, len(sh.all))
			end := max(0, next-atOnce)
			for _, t := range sh.all[end:next] {
				at := f.CursorOf(&t.Entry)
				if f.Match(&t.Entry) && at.Compare(c) > 0 && (!full || at.Compare(last) < 0) {
					found = append(found, candidate{at, t})
				}
			}
			next, more = end, end > 0
		})
		if err != nil {
			return p, err
		}
		if first(limit + 1); len(found) > limit {
			full, last = true, found[limit].Cursor // later entries are on another page
		}
	}
	if len(found) > limit {
		p.Next, found = found[limit-1].Cursor, found[:limit]
	}
	return p, s.in(ctx, index, func(sh *shard, _ machine.Moment) {
		for _, x := range found {
			// The task may have been removed or moved since List read it.
			if e := &x.task.Entry; sh.tasks[x.ID] == x.task && f.CursorOf(e) == x.Cursor && f.Match(e) {
				p.Entries = append(p.Entries, machine.CopyEntry(*e))
			}
		}
	})
}

// Stats returns the shard's numbers. O(n) in the overdue tasks.
func (s *Store) Stats(ctx context.Context, index int) (st store.Stats, err error) {
	err = s.in(ctx, index, func(sh *shard, at machine.Moment) { st = machine.Stats(sh, at.Wall) })
	return st, err
}

// Repair counts the tasks. There is nothing to correct, because every command is
// atomic.
func (s *Store) Repair(ctx context.Context, index int) (r store.Repair, err error) {
	err = s.in(ctx, index, func(sh *shard, _ machine.Moment) { r.Looked = int64(len(sh.tasks)) })
	return r, err
}
