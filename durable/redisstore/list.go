package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/tickless/tickless/durable/store"
)

// Get returns what is known of a task.
func (s *Store) Get(ctx context.Context, shard int, id string) (store.Entry, error) {
	v, err := s.one(ctx, s.scripts.get, shard, id)
	if err != nil {
		return store.Entry{}, err
	}
	f, ok := words(v)
	if !ok || len(f) != 0 && len(f) != 6 {
		return store.Entry{}, unexpected(v)
	}
	if len(f) == 0 {
		return store.Entry{}, store.ErrNotFound
	}
	state, _ := strconv.Atoi(f[0])
	return entry(id, store.State(state), parseTime(f[1]), f[2:]), nil
}

// A spot is a place in the order of a list: what comes after it is still to come. At is
// -1 before all of a state.
type spot struct {
	state store.State
	at    store.Time
	id    string
}

func (a spot) cursor() store.Cursor {
	return store.Cursor(fmt.Sprintf("%d %d %s", a.state, a.at, a.id))
}

func parseCursor(c store.Cursor) (spot, error) {
	f := strings.SplitN(string(c), " ", 3)
	if len(f) == 3 {
		state, err1 := strconv.ParseUint(f[0], 10, 8)
		at, err2 := strconv.ParseInt(f[1], 10, 64)
		if err1 == nil && err2 == nil {
			return spot{store.State(state), store.Time(at), f[2]}, nil
		}
	}
	return spot{}, fmt.Errorf("%w: %q is no cursor of this store", store.ErrInvalid, c)
}

// maxLooks is how many scripts a page is made of at the most. Each looks at up to 1,000
// entries of a state.
const maxLooks = 10

// List returns a page. A page costs O(log n + entries that it looks at), of which it
// leaves out those that do not have the filter's handler or prefix: if it has looked at
// many it is short.
func (s *Store) List(ctx context.Context, shard int, f store.Filter, c store.Cursor, limit int) (store.Page, error) {
	if err := store.CheckList(&f, limit); err != nil {
		return store.Page{}, err
	}
	at := spot{store.Pending, -1, ""}
	if c != "" {
		var err error
		if at, err = parseCursor(c); err != nil {
			return store.Page{}, err
		}
	}
	var p store.Page
	for looks := 0; ; looks++ {
		if f.State != 0 && at.state < f.State {
			at = spot{f.State, -1, ""}
		}
		if at.state > store.Dead || f.State != 0 && at.state > f.State {
			return p, nil
		}
		if len(p.Entries) == limit || looks == maxLooks {
			p.Next = at.cursor()
			return p, nil
		}
		entries, to, err := s.look(ctx, shard, &f, at, limit-len(p.Entries))
		if err != nil {
			return store.Page{}, err
		}
		p.Entries = append(p.Entries, entries...)
		at = to
	}
}

// look returns up to n entries of a state that come after a spot, and the spot after
// them.
func (s *Store) look(ctx context.Context, shard int, filter *store.Filter, from spot, n int) ([]store.Entry, spot, error) {
	most, after := store.Time(1<<52), ""
	if filter.To != 0 {
		most = filter.To - 1
	}
	if from.at >= 0 {
		after = strconv.FormatInt(int64(from.at), 10)
	}
	v, err := s.one(ctx, s.scripts.list, shard, strconv.Itoa(int(from.state)), n,
		int64(filter.From), int64(most), after, from.id, filter.Prefix, filter.Handler)
	if err != nil {
		return nil, spot{}, err
	}
	list, _ := v.([]any)
	if len(list) != 4 {
		return nil, spot{}, unexpected(v)
	}
	head, ok1 := words(list[:3])
	f, ok2 := words(list[3])
	if !ok1 || !ok2 {
		return nil, spot{}, unexpected(v)
	}
	var out []store.Entry
	for i := 0; i+6 <= len(f); i += 6 {
		out = append(out, entry(f[i], from.state, parseTime(f[i+1]), f[i+2:i+6]))
	}
	if head[0] == "1" {
		return out, spot{from.state + 1, -1, ""}, nil
	}
	return out, spot{from.state, parseTime(head[1]), head[2]}, nil
}
