package memstore

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/timingwheel"
)

// Get returns what is known of a task.
func (s *Store) Get(ctx context.Context, shard int, id string) (store.Entry, error) {
	if err := s.begin(ctx); err != nil {
		return store.Entry{}, err
	}
	sh := s.shards[shard]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	t := sh.tasks[id]
	if t == nil {
		return store.Entry{}, store.ErrNotFound
	}
	return t.entry(), nil
}

// entry is a copy for a caller. Failures are never changed, only replaced.
func (t *task) entry() store.Entry {
	e := t.Entry
	e.Record = bytes.Clone(e.Record)
	e.Failures = slices.Clone(e.Failures)
	if e.NextTask != nil {
		next := own(*e.NextTask)
		e.NextTask = &next
	}
	return e
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
	if err := s.begin(ctx); err != nil {
		return store.Page{}, err
	}
	var after spot
	if c != "" {
		var err error
		if after, err = parseCursor(c); err != nil {
			return store.Page{}, err
		}
	}
	sh := s.shards[shard]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	var found []*task
	for _, t := range sh.tasks {
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
		p.Entries = append(p.Entries, t.entry())
	}
	return p, nil
}

// Stats returns the shard's numbers. O(n) for n kinds of tasks that are due.
func (s *Store) Stats(ctx context.Context, shard int) (store.Stats, error) {
	if err := s.begin(ctx); err != nil {
		return store.Stats{}, err
	}
	sh := s.shards[shard]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := s.now()
	sh.advance(now)
	st := store.Stats{
		Pending:  int64(sh.waiting.Len() + sh.overdue),
		Overdue:  int64(sh.overdue),
		Running:  int64(sh.leases.Len()),
		Dead:     int64(sh.dead),
		Paused:   sh.paused,
		Counters: sh.n,
	}
	for k, q := range sh.due {
		st.Late = max(st.Late, now.Sub(q.first().At))
		if !sh.known(k) {
			st.Unknown += int64(q.len())
		}
	}
	return st, nil
}

// known reports whether there is a worker that can run tasks of a kind.
func (sh *shard) known(k kind) bool {
	for _, c := range sh.workers {
		if knows(&c, k) {
			return true
		}
	}
	return false
}

// Forecast counts. O(n) in the tasks of the shard that wait.
func (s *Store) Forecast(ctx context.Context, shard int, moments []store.Time) ([]int64, error) {
	if err := store.CheckForecast(moments); err != nil {
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	sh := s.shards[shard]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	out := make([]int64, len(moments)+1)
	count := func(at store.Time) {
		// The first moment that is after it.
		i, _ := slices.BinarySearch(moments, at+1)
		out[i]++
	}
	sh.waiting.Each(func(_ timingwheel.ID, x timingwheel.Expired[*task]) { count(x.Value.At) })
	for _, q := range sh.due {
		for _, t := range q.tasks {
			count(t.At)
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
	if err := s.begin(ctx); err != nil {
		return store.Repair{}, err
	}
	sh := s.shards[shard]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return store.Repair{Looked: int64(len(sh.tasks))}, nil
}
