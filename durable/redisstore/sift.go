package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tickless/tickless/durable/store"
)

// sift lists by a prefix or an error: it first finds the ids, in no order, and then
// reads the tasks.
func (s *Store) sift(ctx context.Context, shard int, f *store.Filter, c store.Cursor, limit int) (p store.Page, err error) {
	ids, err := s.idsOf(ctx, shard, f)
	if err != nil {
		return p, err
	}
	if f.Prefix != "" {
		ids = slices.DeleteFunc(ids, func(id string) bool { return id <= c.ID || !strings.HasPrefix(id, f.Prefix) })
	}
	slices.Sort(ids)
	ids = slices.Compact(ids) // one that has moved was found twice
	const together = 100
	var found []store.Entry
	first := func(n int) {
		slices.SortFunc(found, func(a, b store.Entry) int { return f.CursorOf(&a).Compare(f.CursorOf(&b)) })
		found = found[:min(n, len(found))]
	}
	for len(ids) > 0 && (f.Prefix == "" || len(found) <= limit) {
		n := min(together, len(ids))
		entries, rest, err := s.find(ctx, shard, ids[:n])
		if err != nil {
			return p, err
		}
		ids = ids[n-len(rest):]
		for _, e := range entries {
			if f.Match(&e) && f.CursorOf(&e).Compare(c) > 0 {
				found = append(found, e)
			}
		}
		if len(found) > 4*limit+together {
			first(limit + 1)
		}
	}
	if first(limit + 1); len(found) > limit {
		found = found[:limit]
		p.Next = f.CursorOf(&found[limit-1])
	}
	p.Entries = found
	return p, nil
}

// idsOf returns the ids of tasks that may match the filter.
func (s *Store) idsOf(ctx context.Context, shard int, f *store.Filter) (ids []string, err error) {
	var places []string // as scan.lua names them
	if f.Error != "" {
		places = []string{"f"}
	} else {
		kinds, err := s.scan(ctx, shard, "k", "", f)
		if err != nil {
			return nil, err
		}
		named := fmt.Sprintf("%d:%s", len(f.Handler), f.Handler)
		for _, kind := range kinds {
			if (f.State == 0 || f.State == store.Pending) && (f.Handler == "" || strings.HasPrefix(kind, named)) {
				places = append(places, "d"+kind)
			}
		}
		for state, place := range map[store.State]string{store.Running: "l", store.Dead: "x", store.Past: "p"} {
			if f.State == 0 || f.State == state {
				places = append(places, place)
			}
		}
	}
	for _, place := range places {
		for cursor := "0"; ; {
			page, err := s.scan(ctx, shard, place, cursor, f)
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

var escape = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`)

// pattern returns a pattern for ids with a prefix. miniredis does not support patterns
// that are not UTF-8, so sift also checks the prefix itself.
func pattern(prefix string) string {
	if !utf8.ValidString(prefix) {
		return "*"
	}
	return escape.Replace(prefix) + "*"
}

func (s *Store) scan(ctx context.Context, shard int, place, cursor string, f *store.Filter) ([]string, error) {
	v, err := s.one(ctx, s.scripts.scan, shard, place, cursor, pattern(f.Prefix), f.Error)
	if err != nil {
		return nil, err
	}
	page, ok := words(v)
	if !ok || place != "k" && len(page) == 0 {
		return nil, unexpected(v)
	}
	return page, nil
}
