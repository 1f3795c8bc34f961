package redisstore

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/redisstore/internal/redistest"
)

// The users in docs/operating.md may run all commands that clients and workers need.
func TestACL_OfTheDocumentation(t *testing.T) {
	t.Parallel() // it mostly waits
	t.Run("server", func(t *testing.T) {
		r := redistest.Start(t).Client()
		defer r.Close()
		makeUsers(t, []*redis.Client{r}, "")
		o := *r.Options()
		tryUsers(t, []*redis.Client{r}, func(user string) redis.UniversalClient {
			o := o
			o.Username, o.Password = user, "secret"
			return redis.NewClient(&o)
		})
	})
	t.Run("cluster", func(t *testing.T) {
		c := redistest.StartCluster(t, 3, 0)
		var nodes []*redis.Client
		for _, s := range c.Servers {
			r := s.Client()
			defer r.Close()
			nodes = append(nodes, r)
		}
		makeUsers(t, nodes, "On a cluster both need `")
		tryUsers(t, nodes, func(user string) redis.UniversalClient {
			return c.Client(func(o *redis.ClusterOptions) { o.Username, o.Password = user, "secret" })
		})
	})
}

// makeUsers creates the users that docs/operating.md shows. They also get the permissions
// that follow the text more on the page.
func makeUsers(t *testing.T, nodes []*redis.Client, more string) {
	t.Helper()
	text, err := os.ReadFile("docs/operating.md")
	require.NoError(t, err)
	if more != "" {
		_, rest, ok := strings.Cut(string(text), more)
		require.True(t, ok)
		more, _, _ = strings.Cut(rest, "`")
		require.True(t, strings.HasPrefix(more, "+"), more)
	}
	users := 0
	for line := range strings.Lines(string(text)) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "ACL SETUSER ")
		if !ok {
			continue
		}
		var args []any
		for _, f := range strings.Fields("ACL SETUSER " + rest + " " + more) {
			args = append(args, f)
		}
		for _, r := range nodes {
			require.NoError(t, r.Do(context.Background(), args...).Err(), line)
		}
		users++
	}
	require.Equal(t, 2, users)
}

func tryUsers(t *testing.T, nodes []*redis.Client, connect func(user string) redis.UniversalClient) {
	ctx := context.Background()
	as := func(user string, opts ...Option) *client {
		r := connect(user)
		t.Cleanup(func() { r.Close() })
		return newClient(r, opts...)
	}
	c := as("scheduler")
	task := durable.Task{Key: "k", Handler: "h"}
	must := func(_ any, err error) {
		t.Helper()
		require.NoError(t, err)
	}
	must(c.Check(ctx))
	must(c.Schedule(ctx, task, durable.After(time.Hour)))
	must(c.Schedule(ctx, task, durable.At(time.Now().Add(time.Hour))))
	must(c.ScheduleBatch(ctx, []durable.Item{{Task: task, When: durable.After(0)}, {Task: task, When: durable.After(0)}}))
	must(c.Schedule(ctx, task, durable.After(time.Hour), durable.OnlyEarlier()))
	must(c.Reschedule(ctx, "k", durable.After(time.Hour)))
	must(c.Get(ctx, "k"))
	must(c.Cancel(ctx, "k"))
	must(c.Stats(ctx))
	require.NoError(t, c.Pause(ctx))
	require.NoError(t, c.Resume(ctx))
	must(c.Repair(ctx))
	must(c.Schedule(ctx, task, durable.After(0)))

	wc := as("worker")
	var log bytes.Buffer // the log handler locks it, and the test reads it after Run
	logged := durable.New(wc.s, durable.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	w := durable.NewWorker(logged, durable.WithLease(300*time.Millisecond))
	w.Handle("h", func(_ context.Context, d durable.Delivery) error {
		if d.Attempt == 1 {
			return errors.New("once more")
		}
		time.Sleep(400 * time.Millisecond)
		return durable.NoRetry(errors.New("no"))
	}, durable.WithBackoff(0, 0))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	require.Eventually(t, func() bool {
		st, err := c.Stats(ctx)
		return err == nil && st.Dead == 1
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, w.Shutdown(ctx))
	require.NoError(t, <-done)
	require.NotContains(t, log.String(), "NOPERM")
	for range c.List(ctx, durable.Filter{State: durable.Dead}) {
	}
	must(c.Requeue(ctx, "k", durable.After(time.Hour)))
	must(c.Purge(ctx, "k"))
	for _, r := range nodes {
		denied, err := r.ACLLog(ctx, 10).Result()
		require.NoError(t, err)
		require.Empty(t, denied, "the server has refused these commands")
	}

	// The users can do nothing else: they cannot empty the server, for example.
	for _, user := range []string{"scheduler", "worker"} {
		other := connect(user)
		defer other.Close()
		require.ErrorContains(t, other.Do(ctx, "flushall").Err(), "NOPERM")
		require.ErrorContains(t, other.Set(ctx, "other", "x", 0).Err(), "NOPERM")
	}
}
