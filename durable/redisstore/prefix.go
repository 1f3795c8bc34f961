package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tickless/tickless/durable/store"
)

// listByPrefix lists the tasks whose ids have the prefix, ordered by id. It first collects
// all ids, and then reads the tasks.
func (s *Store) listByPrefix(ctx context.Context, shard int, f *store.Filter, after string, limit int) (p store.Page, err error) {
	ids, err := s.candidateIDs(ctx, shard, f)
	if err != nil {
		return p, err
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return id <= after })
	slices.Sort(ids)
	ids = slices.Compact(ids) // a task that moved meanwhile may be found twice
	for len(ids) > 0 && len(p.Entries) <= limit {
		n := min(100, len(ids))
		entries, unread, err := s.readEntries(ctx, shard, ids[:n])
		if err != nil {
			return store.Page{}, err
		}
		ids = ids[n-len(unread):]
		for _, e := range entries {
			if f.Match(&e) {
				p.Entries = append(p.Entries, e)
			}
		}
	}
	if len(p.Entries) > limit {
		p.Entries = p.Entries[:limit]
		p.Next = f.CursorOf(&p.Entries[limit-1])
	}
	return p, nil
}

// candidateIDs returns the ids of tasks that may match the filter, in no order.
func (s *Store) candidateIDs(ctx context.Context, shard int, f *store.Filter) (ids []string, err error) {
	var indexes []string // the argument WHAT of scan.lua
	if f.State == 0 || f.State == store.Pending {
		kinds, err := s.runScan(ctx, shard, "k", "", f)
		if err != nil {
			return nil, err
		}
		kindPrefix := fmt.Sprintf("%d:%s", len(f.Handler), f.Handler)
		for _, kind := range kinds {
			if f.Handler == "" || strings.HasPrefix(strings.TrimLeft(kind, "!~@"), kindPrefix) {
				indexes = append(indexes, "d"+kind)
			}
		}
	}
	for state, index := range map[store.State]string{store.Running: "l", store.Dead: "x", store.Past: "p"} {
		if f.State == 0 || f.State == state {
			indexes = append(indexes, index)
		}
	}
	for _, index := range indexes {
		for cursor := "0"; ; {
			page, err := s.runScan(ctx, shard, index, cursor, f)
			if err != nil {
				return nil, err
			}
			ids = append(ids, page[1:]...)
			if cursor = page[0]; cursor == "0" {
				break
			}
		}
	}
	return ids, nil
}

var patternEscaper = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`)

// runScan runs scan.lua.
func (s *Store) runScan(ctx context.Context, shard int, index, cursor string, f *store.Filter) ([]string, error) {
	v, err := s.runScript(ctx, s.scripts.scan, shard, index, cursor, patternEscaper.Replace(f.Prefix)+"*")
	if err != nil {
		return nil, err
	}
	page, ok := decodeStrings(v)
	if !ok || index != "k" && len(page) == 0 {
		return nil, answerError(v)
	}
	return page, nil
}
