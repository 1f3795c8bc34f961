package redisstore_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/redisstore"
	"github.com/tickless/tickless/durable/redisstore/internal/redistest"
	"github.com/tickless/tickless/durable/store"
)

var nobody = slog.New(slog.NewTextHandler(io.Discard, nil))

func clientOf(r redis.UniversalClient, opts ...redisstore.Option) *durable.Client {
	opts = append([]redisstore.Option{redisstore.WithLogger(nobody)}, opts...)
	return durable.New(redisstore.New(r, opts...), durable.WithLogger(nobody))
}

func TestCheck_SeesHowTheServerIsSetUp(t *testing.T) {
	r := redistest.Start(t).Client()
	defer r.Close()
	c := clientOf(r)
	h, err := c.Check(t.Context())
	require.NoError(t, err)
	require.Len(t, h.Warnings, 1)
	require.Contains(t, h.Warnings[0], "restart loses every task")

	require.NoError(t, r.ConfigSet(t.Context(), "appendonly", "yes").Err())
	h, err = c.Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, h.Warnings)

	require.NoError(t, r.ConfigSet(t.Context(), "maxmemory", "100mb").Err())
	require.NoError(t, r.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err())
	_, err = c.Check(t.Context())
	require.ErrorIs(t, err, redisstore.ErrEviction)
	require.ErrorIs(t, durable.NewWorker(c).Run(t.Context()), durable.ErrUnsafe)
}

// Exists does not create the store.
func TestExists(t *testing.T) {
	r := redistest.Start(t).Client()
	defer r.Close()
	s := redisstore.New(r, redisstore.WithLogger(nobody))
	there, err := s.Exists(t.Context())
	require.NoError(t, err)
	require.False(t, there)
	require.Empty(t, r.Keys(t.Context(), "*").Val())
	_, err = s.Check(t.Context())
	require.NoError(t, err)
	for name, want := range map[string]bool{redisstore.DefaultName: true, "other": false} {
		s := redisstore.New(r, redisstore.WithName(name), redisstore.WithShards(8), redisstore.WithLogger(nobody))
		there, err := s.Exists(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, there, name)
	}
}

// Run waits until the server runs.
func TestRun_WaitsForTheServer(t *testing.T) {
	s := redistest.Start(t)
	r := s.Client()
	defer r.Close()
	s.Kill()
	c := clientOf(r)

	stop, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- durable.NewWorker(c).Run(stop) }()
	require.Never(t, func() bool { return len(ended) > 0 }, 100*time.Millisecond, 10*time.Millisecond)
	cancel()
	require.NoError(t, <-ended, "Run returns no error when its context ends")

	stop, cancel = context.WithCancel(t.Context())
	seen := make(chan string, 1)
	w := durable.NewWorker(c)
	w.Handle("h", func(_ context.Context, d durable.Delivery) error {
		seen <- d.Key
		return nil
	})
	go func() { ended <- w.Run(stop) }()
	s.Restart()
	_, err := c.Schedule(t.Context(), durable.Task{Key: "k", Handler: "h"}, durable.After(0))
	require.NoError(t, err)
	require.Equal(t, "k", <-seen)
	cancel()
	require.NoError(t, <-ended)
}

// Run ends with an error after its client was closed.
func TestRun_EndsWithAClientThatWasClosed(t *testing.T) {
	r := redistest.Start(t).Client()
	c := clientOf(r)
	w := durable.NewWorker(c)
	begun := make(chan struct{})
	w.Handle("h", func(ctx context.Context, _ durable.Delivery) error {
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	})
	ended := make(chan error, 1)
	go func() { ended <- w.Run(t.Context()) }()
	_, err := c.Schedule(t.Context(), durable.Task{Key: "k", Handler: "h"}, durable.After(0))
	require.NoError(t, err)
	<-begun
	require.NoError(t, r.Close())
	_, err = c.Schedule(t.Context(), durable.Task{Key: "l", Handler: "h"}, durable.After(0))
	require.ErrorIs(t, err, store.ErrClosed)
	require.NotErrorIs(t, err, store.ErrNotDone)
	err = <-ended
	require.ErrorIs(t, err, store.ErrClosed)
	require.ErrorIs(t, err, redis.ErrClosed)
	require.ErrorIs(t, err, durable.ErrNotHandedBack)
}

// A permanent error, which wraps store.ErrUnfit, ends Run at once.
func TestRun_RefusesClientsThatCannotWork(t *testing.T) {
	refused := func(r redis.UniversalClient, opts ...redisstore.Option) error {
		t.Helper()
		c := clientOf(r, opts...)
		_, err := c.Check(t.Context())
		require.ErrorIs(t, err, store.ErrUnfit)
		err = durable.NewWorker(c).Run(t.Context())
		require.ErrorIs(t, err, store.ErrUnfit)
		return err
	}
	server := redistest.Start(t)
	closed := server.Client()
	require.NoError(t, closed.Close())
	require.ErrorIs(t, refused(closed), redis.ErrClosed)

	r := server.Client()
	defer r.Close()
	require.NoError(t, r.Do(t.Context(), "acl", "setuser", "reader", "on", ">secret", "~*", "+@read", "+@connection").Err())
	reader := server.Client(func(o *redis.Options) { o.Username, o.Password = "reader", "secret" })
	defer reader.Close()
	require.ErrorContains(t, refused(reader), "NOPERM")

	require.NoError(t, r.ConfigSet(t.Context(), "requirepass", "secret").Err())
	stranger := server.Client()
	defer stranger.Close()
	refused(stranger)

	// Run refuses a client of one node of a Cluster: the node has only some of the
	// shards.
	for _, s := range redistest.StartCluster(t, 3, 0).Servers {
		node := s.Client()
		defer node.Close()
		require.ErrorContains(t, refused(node, redisstore.WithShards(32)), "needs a redis.ClusterClient")
	}
}
