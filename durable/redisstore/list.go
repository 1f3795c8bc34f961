package redisstore

import (
	"context"
	"strconv"

	"github.com/tickless/tickless/durable/store"
)

// Get returns a task's entry, or store.ErrNotFound.
func (s *Store) Get(ctx context.Context, shard int, id string) (store.Entry, error) {
	e, _, err := s.readEntries(ctx, shard, []string{id})
	switch {
	case err != nil:
		return store.Entry{}, err
	case len(e) == 0:
		return store.Entry{}, store.ErrNotFound
	}
	return e[0], nil
}

// readEntries reads the entries with these ids. If the script stops early, unread has the
// remaining ids.
func (s *Store) readEntries(ctx context.Context, shard int, ids []string) (found []store.Entry, unread []string, err error) {
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = id
	}
	v, err := s.runScript(ctx, s.scripts.get, shard, args...)
	if err != nil {
		return nil, nil, err
	}
	const fieldsPerEntry = 7
	f, ok := decodeStrings(v)
	if !ok || len(f)%fieldsPerEntry != 2 {
		return nil, nil, answerError(v)
	}
	processed, _ := strconv.Atoi(f[0])
	if processed < 1 || processed > len(ids) {
		return nil, nil, answerError(v)
	}
	halted := f[1]
	for f = f[2:]; len(f) > 0; f = f[fieldsPerEntry:] {
		state, _ := strconv.Atoi(f[1])
		found = append(found, parseEntry(f[0], store.State(state), parseTime(f[2]), f[3:fieldsPerEntry]))
	}
	notePauses(found, halted)
	return found, ids[processed:], nil
}

// maxListScripts is the maximum number of scripts for a page. Each script reads at most
// 1,000 entries of one state.
const maxListScripts = 10

// List returns a page. It runs at most ten scripts, so the page may be short even if more
// entries match the filter.
//
// With a Prefix, List is slower: it first reads the ids of all tasks, or of all tasks in
// the filter's State.
func (s *Store) List(ctx context.Context, shard int, f store.Filter, c store.Cursor, limit int) (store.Page, error) {
	if err := store.CheckList(&f, limit); err != nil {
		return store.Page{}, err
	}
	if f.Prefix != "" && !f.Runs {
		return s.listByPrefix(ctx, shard, &f, c.ID, limit)
	}
	var p store.Page
	for scripts := 0; ; scripts++ {
		if first := max(f.State, store.Pending); c.State < first && !f.Runs {
			c = store.Cursor{State: first}
		}
		if c.State > store.Past || f.State != 0 && c.State > f.State {
			return p, nil
		}
		if len(p.Entries) == limit || scripts == maxListScripts {
			p.Next = c
			return p, nil
		}
		entries, next, err := s.listOneState(ctx, shard, &f, c, limit-len(p.Entries))
		if err != nil {
			return store.Page{}, err
		}
		for _, e := range entries {
			if f.Match(&e) { // the scripts also match earlier failures
				p.Entries = append(p.Entries, e)
			}
		}
		c = next
	}
}

// stateOfRuns is the STATE of scripts/list.lua that stands for finished runs.
const stateOfRuns = 5

// listOneState returns up to n entries of one state after a cursor, and the cursor after
// these entries.
func (s *Store) listOneState(ctx context.Context, shard int, filter *store.Filter, from store.Cursor, n int) ([]store.Entry, store.Cursor, error) {
	maxTime := store.Farthest
	if filter.To != 0 {
		maxTime = filter.To - 1
	}
	state, at := int(from.State), any(int64(from.At))
	if filter.Runs {
		if state = stateOfRuns; from == (store.Cursor{}) {
			at, from.State = "", store.Past
		}
	}
	v, err := s.runScript(ctx, s.scripts.list, shard, state, n, int64(filter.From), int64(maxTime), at, from.ID, filter.Handler, filter.Error, filter.Group, boolArg(filter.Paused))
	if err != nil {
		return nil, from, err
	}
	list, _ := v.([]any)
	if len(list) != 5 {
		return nil, from, answerError(v)
	}
	head, ok1 := decodeStrings(list[:3])
	f, ok2 := decodeStrings(list[3])
	halted, _ := list[4].(string)
	if !ok1 || !ok2 {
		return nil, from, answerError(v)
	}
	var entries []store.Entry
	for i := 0; i+6 <= len(f); i += 6 {
		entries = append(entries, parseEntry(f[i], from.State, parseTime(f[i+1]), f[i+2:i+6]))
	}
	notePauses(entries, halted)
	if head[0] == "1" {
		return entries, store.Cursor{State: from.State + 1}, nil
	}
	return entries, store.Cursor{State: from.State, At: parseTime(head[1]), ID: head[2]}, nil
}
