package redisstore

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/redisstore/internal/redistest"
	"github.com/tickless/tickless/durable/store"
)

// A worker with a long recheck interval or a long lease is silent for minutes. It still
// counts as running, so its tasks are not in Stats.Unknown.
func TestCrew_LongRecheck(t *testing.T) {
	ctx := context.Background()
	rdb := redistest.Start(t).Client()
	t.Cleanup(func() { rdb.Close() })
	for _, x := range []struct {
		name                   string
		recheck, lease, silent time.Duration
		there                  bool
	}{
		{"a short recheck", time.Second, time.Second, 59 * time.Second, true},
		{"a short recheck, gone", time.Second, time.Second, 61 * time.Second, false},
		{"a long recheck", 2 * time.Minute, time.Second, 239 * time.Second, true},
		{"a long recheck, gone", 2 * time.Minute, time.Second, 241 * time.Second, false},
		{"a long lease", time.Second, 2 * time.Minute, 239 * time.Second, true},
		{"a long lease, gone", time.Second, 2 * time.Minute, 241 * time.Second, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := New(rdb, WithName(strings.ReplaceAll(x.name, " ", "_")), WithShards(1), WithRecheck(x.recheck))
			t.Cleanup(func() { s.Close() })
			s.scripts, s.config.nowAsksServer = clockedScripts, true
			c := &clock{s: s, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
			c.advance(0)
			claim := func(sender string, n int64, handler string, lease time.Duration) store.Answer {
				t.Helper()
				a, err := s.Do(ctx, 0, store.Stamp{Sender: sender, Number: n}, store.Round{Lease: lease, MaxCrashes: 3,
					Claim: store.Claim{Asked: true, Max: 1, Handlers: []string{handler}}})
				require.NoError(t, err)
				return a
			}
			claim("sleeps", 1, "h2", x.lease)
			isLost := func() bool {
				workers, err := s.Workers(ctx, 0)
				require.NoError(t, err)
				require.Len(t, workers, 1)
				require.Equal(t, []string{"h2"}, workers[0].Handlers)
				return workers[0].Lost
			}
			c.advance(max(x.recheck, x.lease, 30*time.Second))
			require.False(t, isLost(), "it may be silent for so long")
			c.advance(x.silent - max(x.recheck, x.lease, 30*time.Second))
			require.True(t, isLost())
			_, err := s.Change(ctx, 0, store.Stamp{Sender: "client", Number: 1}, store.Command{Op: store.Schedule, Items: []store.Item{
				{ID: "k", When: store.After(0), Task: store.Task{ID: "k", Handler: "h2"}}}})
			require.NoError(t, err)
			wake := s.shards[0].keys[keyWake]
			require.NoError(t, rdb.Del(ctx, wake).Err()) // remove the wake-up that Change sent
			require.Empty(t, claim("other", 1, "h1", time.Second).Tasks)
			woken, err := rdb.ZCard(ctx, wake).Result()
			require.NoError(t, err)
			require.Positive(t, woken)
			st, err := s.Stats(ctx, 0)
			require.NoError(t, err)
			require.Equal(t, x.there, st.Unknown == 0)
			require.Len(t, claim("sleeps", 2, "h2", x.lease).Tasks, 1)
		})
	}
}
