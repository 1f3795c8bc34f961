package redisstore

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// statsFields are the fields of meta that scripts/stats.lua returns.
var statsFields = []any{"paused", "claimed", "done", "retried", "died", "crashed", "released", "refused", "cancelled"}

// Stats returns the shard's counts. It costs O(log n) for each pair of a handler and a
// schedule.
func (s *Store) Stats(ctx context.Context, shard int) (st store.Stats, err error) {
	if err := s.checkOpen(ctx); err != nil {
		return st, err
	}
	v, err := s.runCall(ctx, scriptCall{script: s.scripts.stats, shard: s.shards[shard], metaFields: statsFields})
	if err != nil {
		return st, toStoreError(err)
	}
	list, _ := v.([]any)
	counts := 8 + len(statsFields)
	if len(list) != counts+2 {
		return st, answerError(v)
	}
	n := make([]int64, counts)
	for i := range n {
		n[i], _ = list[i].(int64)
	}
	limits, ok1 := parseLimits(list[counts])
	paused, ok2 := parsePauses(list[counts+1])
	if !ok1 || !ok2 {
		return st, answerError(v)
	}
	return store.Stats{
		Limits:         limits,
		PausedHandlers: paused,
		Pending:        n[0], Overdue: n[1], Running: n[2], Dead: n[3], Unknown: n[4], Astray: max(0, n[6]), Past: n[7],
		Late:   time.Duration(n[5]) * time.Microsecond,
		Paused: n[8] == 1,
		Counters: store.Counters{
			Claimed: n[9], Done: n[10], Retried: n[11], Died: n[12], Crashed: n[13], Released: n[14], Refused: n[15], Cancelled: n[16],
		},
	}, nil
}

// Workers returns the workers. It takes O(n) for n workers and their handlers.
func (s *Store) Workers(ctx context.Context, shard int) ([]store.Worker, error) {
	now, err := s.Now(ctx, shard)
	if err != nil {
		return nil, err
	}
	v, err := s.runScript(ctx, s.scripts.workers, shard)
	if err != nil {
		return nil, err
	}
	f, ok := decodeStrings(v)
	if !ok {
		return nil, answerError(v)
	}
	var workers []store.Worker
	for len(f) >= 4 {
		n := parseCount(f[3])
		if n > len(f)-4 {
			return nil, answerError(v)
		}
		w := store.Worker{About: f[2], Seen: parseTime(f[1])}
		var interval int64
		if x := strings.Fields(f[0]); len(x) == 3 { // the entry of an older version has no number
			interval, _ = strconv.ParseInt(x[0], 10, 64)
			w.Number, _ = strconv.ParseInt(x[1], 10, 64)
		}
		w.Lease = time.Duration(min(max(0, interval), store.MaxDelay.Microseconds())) * time.Microsecond
		w.Lost = store.IsSilent(w.Seen, now, w.Lease)
		for _, name := range f[4 : 4+n] {
			switch _, text, _ := strings.Cut(name, ":"); {
			case strings.HasPrefix(name, "h"):
				w.Handlers = append(w.Handlers, text)
			case strings.HasPrefix(name, "s"):
				w.Schedules = append(w.Schedules, text)
			}
		}
		slices.Sort(w.Handlers)
		slices.Sort(w.Schedules)
		workers, f = append(workers, w), f[4+n:]
	}
	return workers, nil
}

// parseSettings decodes a hash of settings by handler, each with parse. An empty hash is nil.
func parseSettings[T any](v any, parse func(value string) T) (settings map[string]T, ok bool) {
	list, ok := decodeStrings(v)
	for i := 0; i+1 < len(list); i += 2 {
		if settings == nil {
			settings = make(map[string]T)
		}
		_, handler, _ := strings.Cut(list[i], ":")
		settings[handler] = parse(list[i+1])
	}
	return settings, ok
}

func parsePauses(v any) (map[string]store.HandlerPause, bool) {
	return parseSettings(v, func(value string) store.HandlerPause {
		since, note, _ := strings.Cut(value, " ")
		return store.HandlerPause{Since: parseTime(since), Note: note}
	})
}

// parseLimits decodes the limits of handlers: see scripts/limits.lua.
func parseLimits(v any) (map[string]store.Limit, bool) {
	return parseSettings(v, func(value string) (l store.Limit) {
		f := strings.Fields(value)
		if len(f) >= 7 {
			l.Concurrency, _ = strconv.Atoi(f[0])
			l.Rate, _ = strconv.ParseFloat(f[6], 64)
		}
		if len(f) == 11 {
			l.GroupConcurrency, _ = strconv.Atoi(f[7])
			l.GroupRate, _ = strconv.ParseFloat(f[10], 64)
		}
		return l
	})
}
