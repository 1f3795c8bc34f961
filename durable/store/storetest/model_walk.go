package storetest

import (
	"strings"

	"github.com/tickless/tickless/durable/store"
)

// A walk reads a list page by page while tasks are created, removed and moved. A task whose
// place does not change must appear exactly once.
type walk struct {
	filter         store.Filter
	cursor         store.Cursor
	unchangedTasks map[string]store.Cursor // tasks that match the filter and have not moved, with their places in the list
	seen           map[string]int          // how often each of the tasks was listed
}

// randomFilter returns a random filter.
func (m *modelTest) randomFilter() (f store.Filter) {
	if m.rng.IntN(2) == 0 {
		f.State = store.State(m.rng.IntN(int(store.Past) + 1))
	}
	if m.rng.IntN(3) == 0 {
		f.Handler = []string{"h0", "h1", "none"}[m.rng.IntN(3)]
	}
	if m.rng.IntN(4) == 0 {
		f.Group = []string{"g0", "g1", "none"}[m.rng.IntN(3)]
	}
	if m.rng.IntN(3) == 0 {
		f.Prefix = []string{"k", "k1", "k2", "k1\x00"}[m.rng.IntN(4)]
	}
	if m.rng.IntN(4) == 0 {
		f.From = m.model.now - store.Time(m.rng.IntN(2000))
	}
	if m.rng.IntN(4) == 0 {
		f.To = m.model.now + store.Time(m.rng.IntN(2000))
	}
	if m.rng.IntN(3) == 0 {
		f.Error = []string{"text of k", "of k1", "the worker", "none"}[m.rng.IntN(4)]
	}
	f.Paused = m.rng.IntN(5) == 0
	return f
}

// continueWalk sometimes reads the next page of m.walk, which it first starts if needed. all
// is what the store should contain.
func (m *modelTest) continueWalk(all []store.Entry) {
	m.Helper()
	w := m.walk
	if w == nil {
		w = &walk{filter: m.randomFilter(), unchangedTasks: make(map[string]store.Cursor), seen: make(map[string]int)}
		for _, e := range expectedList(all, w.filter) {
			w.unchangedTasks[e.ID] = w.filter.CursorOf(&e)
		}
		m.walk = w
	}
	for id, at := range w.unchangedTasks {
		if t := m.tasks[id]; t == nil || t.HasExpired(m.model.now) || !matchesFilter(&t.Entry, w.filter) || w.filter.CursorOf(&t.Entry) != at {
			delete(w.unchangedTasks, id)
		}
	}
	if m.rng.IntN(3) > 0 {
		return
	}
	p, err := m.Store.List(ctx, 0, w.filter, w.cursor, 1+m.rng.IntN(3))
	m.requireNoError(err)
	for _, e := range p.Entries {
		t := m.tasks[e.ID]
		m.require(t != nil, "the list has the unexpected %+v", e)
		m.adoptVersion(&e)
		equal(m.storeTest, "a listed entry", e, m.withPause(t.Entry))
		at := w.filter.CursorOf(&e)
		m.require(matchesFilter(&e, w.filter) && at.Compare(w.cursor) > 0, "the list by %+v has, after %v, the unexpected %+v", w.filter, w.cursor, e)
		w.cursor = at
		w.seen[e.ID]++
	}
	if p.Next != (store.Cursor{}) {
		m.require(p.Next.Compare(w.cursor) >= 0, "the list's cursor went back from %v to %v", w.cursor, p.Next)
		w.cursor = p.Next
		return
	}
	for id := range w.unchangedTasks {
		equal(m.storeTest, "times listed: "+strings.ToValidUTF8(id, "?"), w.seen[id], 1)
	}
	if m.caseCounts["walked"]++; w.filter.Prefix != "" {
		m.caseCounts["walked by prefix"]++
	}
	m.walk = nil
}
