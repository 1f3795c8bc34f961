package redisstore

import (
	"cmp"
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

func (a spot) compare(b spot) int {
	return cmp.Or(cmp.Compare(a.state, b.state), cmp.Compare(a.at, b.at), strings.Compare(a.id, b.id))
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
func (s *Store) look(ctx context.Context, shard int, f *store.Filter, from spot, n int) ([]store.Entry, spot, error) {
	least, most, after := strconv.FormatInt(int64(f.From), 10), "+inf", ""
	if f.To != 0 {
		most = "(" + strconv.FormatInt(int64(f.To), 10)
	}
	if from.at >= 0 {
		after = strconv.FormatInt(int64(from.at), 10)
	}
	v, err := s.one(ctx, s.scripts.list, shard, strconv.Itoa(int(from.state)), n, least, most, after, from.id, f.Prefix, f.Handler)
	if err != nil {
		return nil, spot{}, err
	}
	lists, _ := v.([]any)
	// A state that is in two keys is merged, as far as both were looked at.
	var found [2][]store.Entry
	over, end := true, spot{}
	for i, list := range lists {
		x, _ := list.([]any)
		if len(lists) > len(found) || len(x) != 4 {
			return nil, spot{}, unexpected(v)
		}
		head, ok1 := words(x[:3])
		entries, ok2 := words(x[3])
		if !ok1 || !ok2 {
			return nil, spot{}, unexpected(v)
		}
		for j := 0; j+6 <= len(entries); j += 6 {
			found[i] = append(found[i], entry(entries[j], from.state, parseTime(entries[j+1]), entries[j+2:j+6]))
		}
		if head[0] != "1" {
			if last := (spot{from.state, parseTime(head[1]), head[2]}); over || last.compare(end) < 0 {
				end = last
			}
			over = false
		}
	}
	out, cut := merge(found[0], found[1], n)
	for i := range out {
		if at := spotOf(&out[i]); !over && at.compare(end) > 0 {
			return out[:i], end, nil
		}
	}
	switch {
	case cut:
		return out, spotOf(&out[len(out)-1]), nil
	case over:
		return out, spot{from.state + 1, -1, ""}, nil
	}
	return out, end, nil
}

func spotOf(e *store.Entry) spot { return spot{e.State, e.At, e.ID} }

// merge merges two lists that are in order, and cuts the result to n.
func merge(a, b []store.Entry, n int) (out []store.Entry, cut bool) {
	if len(b) == 0 {
		return a, false // the script has cut it
	}
	for len(a)+len(b) > 0 {
		if len(out) == n {
			return out, true
		}
		if len(b) == 0 || len(a) > 0 && spotOf(&a[0]).compare(spotOf(&b[0])) < 0 {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return out, false
}
