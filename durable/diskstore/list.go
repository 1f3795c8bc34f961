package diskstore

import (
	"cmp"
	"container/heap"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tickless/tickless/durable/store"
)

// maxLooks is how many tasks are looked at for a page: if few meet the filter it is
// shorter than its limit.
const maxLooks = 4000

// A spot is a place in the order of a list.
type spot struct {
	state store.State
	mark
}

func (a spot) compare(b spot) int {
	return cmp.Or(cmp.Compare(a.state, b.state), a.mark.compare(b.mark))
}

func (a spot) cursor() store.Cursor {
	b := binary.AppendUvarint([]byte{'1', byte('0' + a.state)}, uint64(a.at))
	return store.Cursor(append(b, a.id...))
}

func parseCursor(c store.Cursor) (a spot, err error) {
	if len(c) > 2 && c[0] == '1' {
		at, n := binary.Uvarint([]byte(c[2:]))
		a = spot{store.State(c[1] - '0'), mark{store.Time(at), string(c[2+max(0, n):])}}
		if n > 0 && a.state >= store.Pending && a.state <= store.Dead && a.at >= 0 && a.at <= store.Farthest && a.id != "" {
			return a, nil
		}
	}
	return spot{}, fmt.Errorf("%w: %q is no cursor of this store", store.ErrInvalid, c)
}

// List returns a page. It is O(limit), and a page may be short, with up to 4000 tasks
// looked at, if few of them meet the filter. Running tasks cost O(n) a page.
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
	p := new(store.Page)
	err := s.read(ctx, shard, func(v *view) error { return v.list(p, &f, after, limit) })
	if err != nil {
		return store.Page{}, err
	}
	return *p, nil
}

func (v *view) list(p *store.Page, f *store.Filter, after spot, limit int) error {
	looks := 0
	last := after
	for state := max(store.Pending, after.state); state <= store.Dead; state++ {
		if f.State != 0 && f.State != state {
			continue
		}
		from := mark{at: max(0, f.From)}
		if state == after.state && after.mark.compare(from) > 0 {
			from = after.mark
		}
		order, err := v.order(state, from, f)
		if err != nil {
			return err
		}
		defer order.close()
		for m, ok := order.next(); ok; m, ok = order.next() {
			here := spot{state, m}
			if here.compare(after) <= 0 {
				continue
			}
			if f.To != 0 && m.at >= f.To {
				break
			}
			if len(p.Entries) == limit || looks == maxLooks {
				p.Next = last.cursor()
				return nil
			}
			if looks++; looks%64 == 0 && v.ctx.Err() != nil {
				return v.ctx.Err()
			}
			last = here
			if !strings.HasPrefix(m.id, f.Prefix) {
				continue
			}
			e, err := v.entry(m.id)
			if err == store.ErrNotFound || err == nil && (e.State != state || e.At != m.at) {
				return damaged("the task %q is not where an index says", m.id)
			}
			if err != nil {
				return err
			}
			if f.Match(&e) {
				p.Entries = append(p.Entries, e)
			}
		}
		if err := order.err(); err != nil {
			return err
		}
	}
	return nil
}

// An order has the tasks of a state in the order of their times: it merges what the
// state's indexes have. It is a heap.Interface.
type order struct {
	heads []*head
	bad   error
}

// A head is the next of an index, or of a list.
type head struct {
	mark
	it   *pebble.Iterator
	n    int // where the time begins in the keys of it
	list []mark
}

// order returns the tasks of a state from a mark on, or a little before it. Those of
// handlers that the filter leaves out need not be there.
func (v *view) order(state store.State, from mark, f *store.Filter) (*order, error) {
	o := new(order)
	add := func(prefix, lower []byte) error {
		it, err := v.iter(prefix, lower)
		if err != nil {
			return err
		}
		h := &head{it: it, n: len(prefix)}
		o.heads = append(o.heads, h)
		it.First()
		return nil
	}
	var err error
	switch state {
	case store.Pending:
		err = v.kinds(func(id uint32, handler string) error {
			if f.Handler != "" && f.Handler != handler {
				return nil
			}
			lower := appendPending(nil, v.sh.index, id, from.at, from.id)
			return add(lower[:kindedLen:kindedLen], lower)
		})
	case store.Dead:
		lower := appendDead(nil, v.sh.index, from.at, from.id)
		err = add(lower[:spaceLen:spaceLen], lower)
	case store.Running:
		var list []mark
		if list, err = v.running(from); err == nil {
			o.heads = append(o.heads, &head{list: list})
		}
	}
	if err != nil {
		o.close()
		return nil, err
	}
	o.heads = slices.DeleteFunc(o.heads, func(h *head) bool { return !o.load(h) })
	heap.Init(o)
	return o, o.bad
}

// load reads the head's next. It returns false, and closes it, if there is none.
func (o *order) load(h *head) bool {
	if h.it == nil {
		if len(h.list) == 0 {
			return false
		}
		h.mark, h.list = h.list[0], h.list[1:]
		return true
	}
	if h.it.Valid() {
		at, id, err := parseTimed(h.it.Key(), h.n)
		if err == nil {
			h.mark = mark{at, string(id)}
			return true
		}
		o.bad = cmp.Or(o.bad, err)
	}
	if err := h.it.Close(); err != nil {
		o.bad = cmp.Or(o.bad, err)
	}
	h.it = nil
	return false
}

func (o *order) next() (m mark, ok bool) {
	if len(o.heads) == 0 || o.bad != nil {
		return mark{}, false
	}
	h := o.heads[0]
	m = h.mark
	if h.it != nil {
		h.it.Next()
	}
	if o.load(h) {
		heap.Fix(o, 0)
	} else {
		heap.Pop(o)
	}
	return m, true
}

func (o *order) err() error { return o.bad }

func (o *order) close() {
	for _, h := range o.heads {
		if h.it != nil {
			_ = h.it.Close() // nothing more is read
			h.it = nil
		}
	}
	o.heads = nil
}

func (o *order) Len() int           { return len(o.heads) }
func (o *order) Less(i, j int) bool { return o.heads[i].mark.compare(o.heads[j].mark) < 0 }
func (o *order) Swap(i, j int)      { o.heads[i], o.heads[j] = o.heads[j], o.heads[i] }
func (o *order) Push(x any)         { o.heads = append(o.heads, x.(*head)) }

func (o *order) Pop() any {
	n := len(o.heads) - 1
	h := o.heads[n]
	o.heads = o.heads[:n]
	return h
}

// kinds calls f with the kinds that there are.
func (v *view) kinds(f func(id uint32, handler string) error) error {
	prefix := appendSpace(nil, v.sh.index, spaceKind)
	return v.each(prefix, prefix, func(key, value []byte) error {
		if len(key) != kindedLen {
			return damaged("the key %q is no kind", key)
		}
		r := read(value)
		handler := r.string()
		r.string()
		if err := r.end("kind", key); err != nil {
			return err
		}
		return f(binary.BigEndian.Uint32(key[spaceLen:]), handler)
	})
}

// running returns where tasks are that run, those from a mark on.
func (v *view) running(from mark) ([]mark, error) {
	var out []mark
	prefix := appendSpace(nil, v.sh.index, spaceRunning)
	err := v.each(prefix, prefix, func(key, value []byte) error {
		var t task
		t.ID = string(key[spaceLen:])
		err := readRunning(key, value, &t)
		if m := t.mark(); m.compare(from) >= 0 {
			out = append(out, m)
		}
		return err
	})
	slices.SortFunc(out, mark.compare)
	return out, err
}

// each calls f with the keys that begin with prefix, from a key on.
func (v *view) each(prefix, from []byte, f func(key, value []byte) error) error {
	it, err := v.iter(prefix, from)
	if err != nil {
		return err
	}
	n := 0
	for it.First(); it.Valid() && err == nil; it.Next() {
		var value []byte
		if value, err = it.ValueAndErr(); err == nil {
			err = f(it.Key(), value)
		}
		if n++; n%1024 == 0 && err == nil {
			err = v.ctx.Err()
		}
	}
	return cmp.Or(err, it.Error(), it.Close())
}
