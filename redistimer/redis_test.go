package redistimer_test

import (
	"context"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/tickless/tickless/redistimer/internal/redistest"
)

// onEach runs a test on each kind of server: miniredis, which is quick and of
// whom it is known that it does not mind keys of several slots, a redis-server,
// and a cluster.
func onEach(t *testing.T, f func(t *testing.T, r redis.UniversalClient)) {
	t.Run("miniredis", func(t *testing.T) {
		s := miniredis.RunT(t)
		run(t, redis.NewClient(&redis.Options{Addr: s.Addr()}), f)
	})
	t.Run("server", func(t *testing.T) {
		run(t, redistest.Start(t).Client(), f)
	})
	t.Run("cluster", func(t *testing.T) {
		run(t, redistest.StartCluster(t, 3, 0).Client(), f)
	})
}

func run(t *testing.T, r redis.UniversalClient, f func(t *testing.T, r redis.UniversalClient)) {
	t.Cleanup(func() { r.Close() }) // after the workers' end
	f(t, r)
}

// keysOf returns all keys of all masters.
func keysOf(t *testing.T, r redis.UniversalClient) []string {
	t.Helper()
	var keys []string
	look := func(ctx context.Context, c *redis.Client) error {
		some, err := c.Keys(ctx, "*").Result()
		keys = append(keys, some...)
		return err
	}
	var err error
	switch r := r.(type) {
	case *redis.Client:
		err = look(context.Background(), r)
	case *redis.ClusterClient:
		for _, master := range masters(t, r) {
			if err = look(context.Background(), master); err != nil {
				break
			}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func masters(t *testing.T, r *redis.ClusterClient) []*redis.Client {
	t.Helper()
	found := make(chan *redis.Client, 100)
	if err := r.ForEachMaster(context.Background(), func(_ context.Context, c *redis.Client) error {
		found <- c
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	close(found)
	var out []*redis.Client
	for c := range found {
		out = append(out, c)
	}
	return out
}

// place returns in how many of due, lease and dead a task is.
func place(t *testing.T, r redis.UniversalClient, id string) []string {
	t.Helper()
	var places []string
	for _, key := range keysOf(t, r) {
		name := key[strings.LastIndex(key, ":")+1:]
		if name != "due" && name != "lease" && name != "dead" {
			continue
		}
		if err := r.ZScore(context.Background(), key, id).Err(); err == nil {
			places = append(places, name)
		}
	}
	return places
}
