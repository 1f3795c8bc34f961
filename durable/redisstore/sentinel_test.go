package redisstore

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/redisstore/internal/redistest"
)

// After a failover a queue continues on the new master, and acknowledged tasks are
// delivered there.
func TestWorker_SentinelFailover(t *testing.T) {
	t.Parallel() // it mostly waits
	if testing.Short() {
		t.Skip("a failover takes long")
	}
	master := redistest.Start(t)
	replica := redistest.Start(t, "--replicaof", "127.0.0.1", strconv.Itoa(master.Port))
	addr := redistest.StartSentinel(t, master)
	watch := redis.NewSentinelClient(&redis.Options{Addr: addr})
	defer watch.Close()
	require.Eventually(t, func() bool {
		known, err := watch.Replicas(t.Context(), "it").Result()
		return err == nil && len(known) == 1 && known[0]["master-link-status"] == "ok"
	}, time.Minute, 20*time.Millisecond)

	r := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "it", SentinelAddrs: []string{addr}})
	defer r.Close()
	c := durable.New(New(r, silent, WithRecheck(time.Second)))
	const n = 200
	seen := make(chan string, 10*n)
	w := durable.NewWorker(c, durable.WithLease(2*time.Second))
	w.Handle("h", func(_ context.Context, d durable.Delivery) error {
		seen <- d.Key
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	defer func() {
		cancel()
		require.NoError(t, <-ended)
	}()

	var items []durable.Item
	for i := range n {
		items = append(items, durable.Item{
			Task: durable.Task{Key: strconv.Itoa(i), Handler: "h"},
			When: durable.After(time.Duration(i) * 40 * time.Millisecond),
		})
	}
	_, err := c.ScheduleBatch(t.Context(), items)
	require.NoError(t, err)
	confirm := r.Conn() // WAIT only covers writes of its own connection
	require.NoError(t, confirm.Set(t.Context(), "last", "x", 0).Err())
	require.EqualValues(t, 1, confirm.Wait(t.Context(), 1, 10*time.Second).Val())
	require.NoError(t, confirm.Close())
	got := map[string]bool{<-seen: true} // it works
	master.Kill()

	for deadline := time.After(2 * time.Minute); len(got) < n; {
		select {
		case key := <-seen:
			got[key] = true
		case <-deadline:
			t.Fatalf("%d of %d tasks delivered", len(got), n)
		}
	}
	now := replica.Client()
	defer now.Close()
	info, err := now.InfoMap(t.Context(), "replication").Result()
	require.NoError(t, err)
	require.Equal(t, "master", info["Replication"]["role"], "the replica has not become the master")
}
