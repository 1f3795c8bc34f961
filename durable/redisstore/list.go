package redisstore

import (
	"context"
	"strconv"

	"github.com/tickless/tickless/durable/store"
)

// Get returns a task's entry.
func (s *Store) Get(ctx context.Context, shard int, id string) (store.Entry, error) {
	e, _, err := s.find(ctx, shard, []string{id})
	switch {
	case err != nil:
		return store.Entry{}, err
	case len(e) == 0:
		return store.Entry{}, store.ErrNotFound
	}
	return e[0], nil
}

// find returns the entries with these ids, and the ids that it has not processed yet.
func (s *Store) find(ctx context.Context, shard int, ids []string) (found []store.Entry, rest []string, err error) {
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = id
	}
	v, err := s.one(ctx, s.scripts.get, shard, args...)
	if err != nil {
		return nil, nil, err
	}
	const width = 7
	f, ok := words(v)
	if !ok || len(f)%width != 1 {
		return nil, nil, unexpected(v)
	}
	looked, _ := strconv.Atoi(f[0])
	if looked < 1 || looked > len(ids) {
		return nil, nil, unexpected(v)
	}
	for f = f[1:]; len(f) > 0; f = f[width:] {
		state, _ := strconv.Atoi(f[1])
		found = append(found, entry(f[0], store.State(state), parseTime(f[2]), f[3:width]))
	}
	return found, ids[looked:], nil
}

// maxLooks is the maximum number of scripts for a page. Each reads up to 1,000 entries
// of a state.
const maxLooks = 10

// List returns a page. A page costs O(log n + entries that it reads). It skips entries
// without the filter's handler or error: if it has skipped many, the page is short. With
// a Prefix it reads the ids of all tasks, or those of a State or a Handler, in small
// steps.
func (s *Store) List(ctx context.Context, shard int, f store.Filter, c store.Cursor, limit int) (store.Page, error) {
	if err := store.CheckList(&f, limit); err != nil {
		return store.Page{}, err
	}
	if f.Prefix != "" {
		return s.listPrefix(ctx, shard, &f, c.ID, limit)
	}
	var p store.Page
	for looks := 0; ; looks++ {
		if first := max(f.State, store.Pending); c.State < first {
			c = store.Cursor{State: first}
		}
		if c.State > store.Past || f.State != 0 && c.State > f.State {
			return p, nil
		}
		if len(p.Entries) == limit || looks == maxLooks {
			p.Next = c
			return p, nil
		}
		entries, next, err := s.look(ctx, shard, &f, c, limit-len(p.Entries))
		if err != nil {
			return store.Page{}, err
		}
		for _, e := range entries {
			if f.Match(&e) { // a text may be in an earlier failure than the latest
				p.Entries = append(p.Entries, e)
			}
		}
		c = next
	}
}

// look returns up to n entries of a state that come after a cursor, and the cursor
// after them.
func (s *Store) look(ctx context.Context, shard int, filter *store.Filter, from store.Cursor, n int) ([]store.Entry, store.Cursor, error) {
	most := store.Farthest
	if filter.To != 0 {
		most = filter.To - 1
	}
	v, err := s.one(ctx, s.scripts.list, shard, strconv.Itoa(int(from.State)), n,
		int64(filter.From), int64(most), int64(from.At), from.ID, filter.Handler, filter.Error)
	if err != nil {
		return nil, from, err
	}
	list, _ := v.([]any)
	if len(list) != 4 {
		return nil, from, unexpected(v)
	}
	head, ok1 := words(list[:3])
	f, ok2 := words(list[3])
	if !ok1 || !ok2 {
		return nil, from, unexpected(v)
	}
	var out []store.Entry
	for i := 0; i+6 <= len(f); i += 6 {
		out = append(out, entry(f[i], from.State, parseTime(f[i+1]), f[i+2:i+6]))
	}
	if head[0] == "1" {
		return out, store.Cursor{State: from.State + 1}, nil
	}
	return out, store.Cursor{State: from.State, At: parseTime(head[1]), ID: head[2]}, nil
}
