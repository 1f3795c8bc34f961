package redisstore

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// Stats returns the shard's numbers. Unknown counts what workers have put aside; of what
// no claim has looked at yet it counts the first 100 tasks.
func (s *Store) Stats(ctx context.Context, shard int) (store.Stats, error) {
	v, err := s.one(ctx, s.scripts.stats, shard)
	if err != nil {
		return store.Stats{}, err
	}
	n, err := ints(v, 15)
	if err != nil {
		return store.Stats{}, err
	}
	return store.Stats{
		Pending: n[0], Overdue: n[1], Running: n[2], Dead: n[3], Unknown: n[4],
		Late:   time.Duration(n[5]) * time.Microsecond,
		Paused: n[6] == 1,
		Counters: store.Counters{
			Claimed: n[7], Done: n[8], Retried: n[9], Died: n[10], Crashed: n[11], Released: n[12], Refused: n[13], Cancelled: n[14],
		},
	}, nil
}

// Forecast counts, in O(log n) for each moment.
func (s *Store) Forecast(ctx context.Context, shard int, moments []store.Time) ([]int64, error) {
	if err := store.CheckForecast(moments); err != nil {
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	out := make([]int64, 0, len(moments))
	for some := range slices.Chunk(moments, 250) {
		args := make([]any, len(some))
		for i, t := range some {
			args[i] = strconv.FormatInt(int64(t), 10)
		}
		v, err := s.one(ctx, s.scripts.forecast, shard, args...)
		if err != nil {
			return nil, err
		}
		n, err := ints(v, len(some))
		if err != nil {
			return nil, err
		}
		for _, x := range n {
			if len(out) > 0 {
				x = max(x, out[len(out)-1]) // the script before was a little earlier
			}
			out = append(out, x)
		}
	}
	return out, nil
}
