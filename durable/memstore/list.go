package memstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/machine"
)

// Get returns what is known of a task.
func (s *Store) Get(ctx context.Context, shard int, id string) (store.Entry, error) {
	x, err := s.enter(ctx, shard)
	if err != nil {
		return store.Entry{}, err
	}
	defer x.leave()
	t := x.Find(id)
	if t == nil {
		return store.Entry{}, store.ErrNotFound
	}
	return machine.CopyEntry(t.Entry), nil
}

// A spot is a place in the order of a list.
type spot struct {
	state store.State
	at    store.Time
	id    string
}

func (a spot) compare(b spot) int {
	return cmp.Or(cmp.Compare(a.state, b.state), cmp.Compare(a.at, b.at), strings.Compare(a.id, b.id))
}

func (t *task) spot() spot { return spot{t.State, t.At, t.ID} }

func (a spot) cursor() store.Cursor {
	return store.Cursor(fmt.Sprintf("%d %d %s", a.state, a.at, a.id))
}

func parseCursor(c store.Cursor) (a spot, err error) {
	f := strings.SplitN(string(c), " ", 3)
	if len(f) == 3 {
		if _, err = fmt.Sscan(f[0]+" "+f[1], &a.state, &a.at); err == nil {
			a.id = f[2]
			return a, nil
		}
	}
	return a, fmt.Errorf("%w: %q is no cursor of this store", store.ErrInvalid, c)
}

// List returns a page. O(n log n) in the tasks of the shard.
func (s *Store) List(ctx context.Context, shard int, f store.Filter, c store.Cursor, limit int) (store.Page, error) {
	if err := store.CheckList(&f, limit); err != nil {
		return store.Page{}, err
	}
	var after spot
	if c != "" {
		var err error
		if after, err = parseCursor(c); err != nil {
			return store.Page{}, err
		}
	}
	x, err := s.enter(ctx, shard)
	if err != nil {
		return store.Page{}, err
	}
	defer x.leave()
	var found []*task
	for _, t := range x.tasks {
		if f.Match(&t.Entry) && (c == "" || t.spot().compare(after) > 0) {
			found = append(found, t)
		}
	}
	slices.SortFunc(found, func(a, b *task) int { return a.spot().compare(b.spot()) })
	var p store.Page
	for i, t := range found {
		if i == limit {
			p.Next = found[i-1].spot().cursor()
			break
		}
		p.Entries = append(p.Entries, machine.CopyEntry(t.Entry))
	}
	return p, nil
}

// Stats returns the shard's numbers. O(n) for n kinds of tasks that are due.
func (s *Store) Stats(ctx context.Context, shard int) (store.Stats, error) {
	x, err := s.enter(ctx, shard)
	if err != nil {
		return store.Stats{}, err
	}
	defer x.leave()
	return machine.Stats(x, x.at.Wall), nil
}

// Forecast counts. O(n) in the tasks of the shard.
func (s *Store) Forecast(ctx context.Context, shard int, moments []store.Time) ([]int64, error) {
	if err := store.CheckForecast(moments); err != nil {
		return nil, err
	}
	x, err := s.enter(ctx, shard)
	if err != nil {
		return nil, err
	}
	defer x.leave()
	out := make([]int64, len(moments)+1)
	for _, t := range x.tasks {
		if t.State == store.Pending {
			i, _ := slices.BinarySearch(moments, t.At+1) // the first moment that is after it
			out[i]++
		}
	}
	for i := 1; i < len(out); i++ {
		out[i] += out[i-1]
	}
	return out[:len(moments)], nil
}

// Repair looks at every task. There is nothing to put right: no command is ever half
// done.
func (s *Store) Repair(ctx context.Context, shard int) (store.Repair, error) {
	x, err := s.enter(ctx, shard)
	if err != nil {
		return store.Repair{}, err
	}
	defer x.leave()
	return store.Repair{Looked: int64(len(x.tasks))}, nil
}
