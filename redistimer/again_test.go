package redistimer

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/redistimer/internal/redistest"
)

// Whatever keeps Again from asking, what was sent before stays unknown until there is
// an answer, and then it is the one that was lost.
func TestAgain_SaysUnknownUntilThereIsAnAnswer(t *testing.T) {
	s := redistest.Start(t)
	direct := s.Client()
	defer direct.Close()
	var cut atomic.Bool
	p := redistest.NewProxy(t, s.Addr, func() bool { return cut.Load() })
	r := redis.NewClient(&redis.Options{Addr: p.Addr, MaxRetries: -1})
	defer r.Close()
	c := New(r, WithShards(1), silent)
	bg := context.Background()
	task := func(key string) Task { return Task{Key: key, Handler: "h"} }
	put := func(key string) {
		_, err := c.Schedule(bg, task(key), After(time.Hour))
		require.NoError(t, err)
	}
	ended, cancel := context.WithCancel(bg)
	cancel()

	for name, call := range map[string]struct {
		do   func(ctx context.Context) error
		want Outcome
	}{
		"Schedule": {func(ctx context.Context) error {
			_, err := c.Schedule(ctx, task("a"), After(time.Hour))
			return err
		}, Created},
		"ScheduleBatch": {func(ctx context.Context) error {
			_, err := c.ScheduleBatch(ctx, []Item{{task("b"), After(time.Hour)}})
			return err
		}, Created},
		"Cancel":     {func(ctx context.Context) error { _, err := c.Cancel(ctx, "c"); return err }, Removed},
		"Reschedule": {func(ctx context.Context) error { _, err := c.Reschedule(ctx, "d", After(0)); return err }, Moved},
	} {
		for _, deadline := range []bool{false, true} {
			require.NoError(t, direct.FlushDB(bg).Err())
			put("c")
			put("d")
			ctx := bg
			if deadline {
				var cancel func()
				ctx, cancel = context.WithTimeout(bg, time.Minute)
				defer cancel()
				require.NoError(t, c.readClock(ctx, c.shards[0]))
			}
			cut.Store(true)
			err := call.do(ctx)
			cut.Store(false)
			var u *UnknownError
			require.ErrorAs(t, err, &u, name)

			// The context of Again has ended.
			_, err = u.Again(ended)
			require.ErrorIs(t, err, ErrUnknown, name)
			require.ErrorIs(t, err, context.Canceled, name)
			require.ErrorAs(t, err, &u)

			// The server is full.
			require.NoError(t, direct.ConfigSet(bg, "maxmemory", "1").Err())
			out, err := u.Again(bg)
			require.NoError(t, direct.ConfigSet(bg, "maxmemory", "0").Err())
			require.NoError(t, err, name)
			require.Equal(t, []Outcome{call.want}, out, name)

			// What is known is no longer asked for.
			out, err = u.Again(bg)
			require.NoError(t, err)
			require.Equal(t, []Outcome{call.want}, out)
		}
	}
}

// An UnknownError that somebody else has made, for a test of theirs, has nothing to ask.
func TestAgain_OfAnErrorThatIsMadeByHand(t *testing.T) {
	e := &UnknownError{}
	_, err := e.Again(context.Background())
	require.Equal(t, e, err)
	require.EqualError(t, e, "redistimer: it is not known whether the command was carried out: (no error)")
}
