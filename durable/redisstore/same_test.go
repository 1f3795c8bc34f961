package redisstore

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/durable/redisstore/internal/redistest"
	"github.com/tickless/tickless/durable/store"
)

func TestSame(t *testing.T) {
	ctx := context.Background()
	server, another, cluster := redistest.Start(t), redistest.Start(t), redistest.StartCluster(t, 3, 0)
	mini := miniredis.RunT(t)
	closed := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
	open := func(r redis.UniversalClient, opts ...Option) *Store {
		t.Cleanup(func() { r.Close() })
		s := New(r, append(opts, silent)...)
		t.Cleanup(func() { s.Close() })
		return s
	}
	toMini := func() *redis.Client { return redis.NewClient(&redis.Options{Addr: mini.Addr()}) }
	s, c, m := open(server.Client()), open(cluster.Client()), open(toMini())
	for name, x := range map[string]struct {
		a, b store.Store
		want bool
	}{
		"one Store":                {s, s, true},
		"one client":               {s, New(s.redis, silent), true},
		"another client":           {s, open(server.Client()), true},
		"another number of shards": {s, open(server.Client(), WithShards(4)), true},
		"another name":             {s, open(server.Client(), WithName("another")), false},
		"another database":         {s, open(server.Client(func(o *redis.Options) { o.DB = 1 })), false},
		"one that it selects": {s, open(server.Client(func(o *redis.Options) {
			o.OnConnect = func(ctx context.Context, c *redis.Conn) error { return c.Select(ctx, 1).Err() }
		})), false},
		"another server":         {s, open(another.Client()), false},
		"a cluster":              {c, open(cluster.Client()), true},
		"a server and a cluster": {s, c, false},
		"what is not Redis":      {s, memstore.New(), false},
		"a server that is mute":  {m, open(toMini()), true},
		"and one client of it":   {m, New(m.redis, silent), true},
		"no server":              {s, open(closed), false},
	} {
		require.Equal(t, x.want, x.a.(*Store).Same(ctx, x.b), name)
		if o, ok := x.b.(*Store); ok {
			require.Equal(t, x.want, o.Same(ctx, x.a), name)
		}
	}

	client := durable.New(s, durable.WithLogger(quiet))
	_, err := client.Schedule(ctx, durable.Task{Key: "k", Handler: "h"}, durable.After(time.Hour))
	require.NoError(t, err)
	_, err = durable.Copy(ctx, open(server.Client()), s)
	require.ErrorIs(t, err, durable.ErrInvalid)
	st, err := client.Stats(ctx)
	require.NoError(t, err)
	require.Zero(t, st.Paused)
	copied, err := durable.Copy(ctx, open(server.Client(), WithName("another")), s)
	require.NoError(t, err)
	require.Equal(t, durable.Copied{New: 1}, copied)
}
