package redisstore

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// Stats returns the shard's counts. It costs O(log n) for each pair of a handler and a
// schedule.
func (s *Store) Stats(ctx context.Context, shard int) (store.Stats, error) {
	n, limits, err := s.readStats(ctx, shard)
	if err != nil {
		return store.Stats{}, err
	}
	return store.Stats{
		Limits:  limits,
		Pending: n[0], Overdue: n[1], Running: n[2], Dead: n[3], Unknown: n[4], Astray: max(0, n[6]), Past: n[7],
		Late:   time.Duration(n[5]) * time.Microsecond,
		Paused: n[8] == 1,
		Counters: store.Counters{
			Claimed: n[9], Done: n[10], Retried: n[11], Died: n[12], Crashed: n[13], Released: n[14], Refused: n[15], Cancelled: n[16],
		},
	}, nil
}

// readStats runs scripts/stats.lua. The seventh number is how many tasks are in no index.
func (s *Store) readStats(ctx context.Context, shard int) ([]int64, map[string]store.Limit, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, nil, err
	}
	metaFields := []any{"paused", "claimed", "done", "retried", "died", "crashed", "released", "refused", "cancelled"}
	v, err := s.runCall(ctx, scriptCall{script: s.scripts.stats, shard: s.shards[shard], metaFields: metaFields})
	if err != nil {
		return nil, nil, toStoreError(err)
	}
	list, _ := v.([]any)
	if len(list) == 0 {
		return nil, nil, answerError(v)
	}
	n, err := decodeInts(list[:len(list)-1], 8+len(metaFields))
	if err != nil {
		return nil, nil, err
	}
	limits, err := parseLimits(list[len(list)-1])
	return n, limits, err
}

// parseLimits decodes the limits of handlers: see scripts/limits.lua.
func parseLimits(v any) (limits map[string]store.Limit, err error) {
	list, ok := decodeStrings(v)
	if !ok {
		return nil, answerError(v)
	}
	for i := 0; i+1 < len(list); i += 2 {
		_, handler, _ := strings.Cut(list[i], ":")
		var l store.Limit
		if f := strings.Fields(list[i+1]); len(f) == 7 {
			l.Concurrency, _ = strconv.Atoi(f[0])
			l.Rate, _ = strconv.ParseFloat(f[6], 64)
		}
		if limits == nil {
			limits = make(map[string]store.Limit)
		}
		limits[handler] = l
	}
	return limits, nil
}
