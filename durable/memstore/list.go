package memstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/machine"
)

// Get returns what is known of a task.
func (s *Store) Get(ctx context.Context, index int, id string) (e store.Entry, err error) {
	ended := s.in(ctx, index, func(sh *shard, _ machine.Moment) {
		err = store.ErrNotFound
		if t := sh.Find(id); t != nil {
			e, err = machine.CopyEntry(t.Entry), nil
		}
	})
	return e, cmp.Or(ended, err)
}

// List returns a page. O(n log n) in the tasks of the shard.
func (s *Store) List(ctx context.Context, index int, f store.Filter, c store.Cursor, limit int) (p store.Page, err error) {
	if err := store.CheckList(&f, limit); err != nil {
		return p, err
	}
	after, err := machine.ParseCursor(c)
	if err != nil {
		return p, err
	}
	err = s.in(ctx, index, func(sh *shard, _ machine.Moment) {
		var found []*store.Entry
		for _, t := range sh.tasks {
			if f.Match(&t.Entry) && machine.Compare(&t.Entry, &after) > 0 {
				found = append(found, &t.Entry)
			}
		}
		slices.SortFunc(found, machine.Compare)
		if len(found) > limit {
			p.Next = machine.CursorOf(found[limit-1])
			found = found[:limit]
		}
		for _, e := range found {
			p.Entries = append(p.Entries, machine.CopyEntry(*e))
		}
	})
	return p, err
}

// Stats returns the shard's numbers. O(n) in the tasks that are overdue.
func (s *Store) Stats(ctx context.Context, index int) (st store.Stats, err error) {
	err = s.in(ctx, index, func(sh *shard, at machine.Moment) { st = machine.Stats(sh, at.Wall) })
	return st, err
}

// Forecast counts. O(n) in the tasks of the shard.
func (s *Store) Forecast(ctx context.Context, index int, moments []store.Time) (counts []int64, err error) {
	if err := store.CheckForecast(moments); err != nil {
		return nil, err
	}
	err = s.in(ctx, index, func(sh *shard, _ machine.Moment) {
		counts = make([]int64, len(moments))
		for _, t := range sh.tasks {
			for i := len(moments) - 1; t.State == store.Pending && i >= 0 && t.At < moments[i]; i-- {
				counts[i]++
			}
		}
	})
	return counts, err
}

// Repair looks at every task. There is nothing to put right: no command is ever half
// done.
func (s *Store) Repair(ctx context.Context, index int) (r store.Repair, err error) {
	err = s.in(ctx, index, func(sh *shard, _ machine.Moment) { r.Looked = int64(len(sh.tasks)) })
	return r, err
}
