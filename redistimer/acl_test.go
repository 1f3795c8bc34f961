package redistimer

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/redistimer/internal/redistest"
)

// The users that docs/operating.md shows can do what it says they can, and the
// server has had to refuse them nothing.
func TestACL_OfTheDocumentation(t *testing.T) {
	ctx := context.Background()
	text, err := os.ReadFile("docs/operating.md")
	require.NoError(t, err)
	r := redistest.Start(t).Client()
	defer r.Close()
	users := 0
	for line := range strings.Lines(string(text)) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "ACL SETUSER ")
		if !ok {
			continue
		}
		var args []any
		for _, f := range strings.Fields("ACL SETUSER " + rest) {
			args = append(args, f)
		}
		require.NoError(t, r.Do(ctx, args...).Err(), line)
		users++
	}
	require.Equal(t, 2, users)
	as := func(user string) *Client {
		o := *r.Options()
		o.Username, o.Password = user, "secret"
		other := redis.NewClient(&o)
		t.Cleanup(func() { other.Close() })
		return New(other, silent)
	}
	c := as("scheduler")
	task := Task{Key: "k", Handler: "h"}
	must := func(_ any, err error) {
		t.Helper()
		require.NoError(t, err)
	}
	must(c.Check(ctx))
	must(c.Schedule(ctx, task, After(time.Hour)))
	must(c.Schedule(ctx, task, At(time.Now().Add(time.Hour))))
	must(c.ScheduleBatch(ctx, []Item{{task, After(0)}, {task, After(0)}}))
	must(c.Schedule(ctx, task, After(time.Hour), OnlyEarlier()))
	must(c.Reschedule(ctx, "k", After(time.Hour)))
	must(c.Get(ctx, "k"))
	must(c.Cancel(ctx, "k"))
	must(c.Stats(ctx))
	require.NoError(t, c.Pause(ctx))
	require.NoError(t, c.Resume(ctx))
	must(c.Repair(ctx))
	_, err = c.Schedule(ctx, task, After(0), Replicated(1, time.Millisecond))
	require.ErrorIs(t, err, ErrNotReplicated)

	wc := as("worker")
	w := NewWorker(wc, WithLease(300*time.Millisecond))
	w.Handle("h", func(_ context.Context, d Delivery) error {
		if d.Attempt == 1 {
			return errors.New("once more")
		}
		time.Sleep(400 * time.Millisecond)
		return NoRetry(errors.New("no"))
	}, WithBackoff(0, 0))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	w.doubt()
	require.Eventually(t, func() bool {
		st, err := c.Stats(ctx)
		return err == nil && st.Dead == 1
	}, time.Minute, 10*time.Millisecond)
	require.Eventually(t, func() bool {
		return r.HExists(ctx, c.shards[0].keys[keyMeta], "checked").Val()
	}, time.Minute, 10*time.Millisecond, "it has looked the shards over")
	require.NoError(t, w.Shutdown(ctx))
	require.NoError(t, <-done)
	require.Zero(t, w.Stats().Errors)
	for range c.DeadLetters(ctx) {
	}
	must(c.Requeue(ctx, "k", After(time.Hour)))
	must(c.Purge(ctx, "k"))
	log, err := r.ACLLog(ctx, 10).Result()
	require.NoError(t, err)
	require.Empty(t, log, "what the server has refused")

	// And no more than that.
	o := *r.Options()
	o.Username, o.Password = "worker", "secret"
	other := redis.NewClient(&o)
	defer other.Close()
	require.ErrorContains(t, other.FlushAll(ctx).Err(), "NOPERM")
	require.ErrorContains(t, other.Set(ctx, "other", "x", 0).Err(), "NOPERM")
}
