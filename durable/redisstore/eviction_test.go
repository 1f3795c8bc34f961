package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/redisstore"
	"github.com/tickless/tickless/durable/redisstore/internal/redistest"
)

// Schedule stops acknowledging tasks soon after a server was set to evict keys.
func TestSchedule_OnAServerThatEvicts(t *testing.T) {
	r := redistest.Start(t).Client()
	defer r.Close()
	c := clientOf(r)
	schedule := func(key string) error {
		_, err := c.Schedule(t.Context(), durable.Task{Key: key, Handler: "h"}, durable.After(time.Hour))
		return err
	}
	require.NoError(t, schedule("first"))
	set := func(policy string) {
		require.NoError(t, r.ConfigSet(t.Context(), "maxmemory", "100mb").Err())
		require.NoError(t, r.ConfigSet(t.Context(), "maxmemory-policy", policy).Err())
	}
	set("volatile-lru")
	h, err := c.Check(t.Context())
	require.NoError(t, err, "no task expires")
	require.Contains(t, fmt.Sprint(h.Warnings), "volatile-lru")

	set("allkeys-random")
	begin := time.Now()
	for i := 0; err == nil; i++ {
		require.Less(t, time.Since(begin), 10*time.Second)
		err = schedule(fmt.Sprint("task", i))
		time.Sleep(100 * time.Millisecond)
	}
	require.ErrorIs(t, err, redisstore.ErrEviction)
	require.ErrorIs(t, err, durable.ErrUnsafe)
	require.ErrorIs(t, err, durable.ErrNotDone)
	// A new Client refuses at once. Other commands still work.
	_, err = clientOf(r).Schedule(t.Context(), durable.Task{Handler: "h"}, durable.After(0))
	require.ErrorIs(t, err, redisstore.ErrEviction)
	out, err := c.Cancel(t.Context(), "first")
	require.NoError(t, err)
	require.Equal(t, durable.Removed, out)
	set("noeviction")
	require.NoError(t, clientOf(r).Store().(*redisstore.Store).Close())
	_, err = clientOf(r).Schedule(t.Context(), durable.Task{Handler: "h"}, durable.After(0))
	require.NoError(t, err)
}

// Damaged numbers of a shard stop neither claims nor commands. Check finds them, and Repair
// corrects them.
func TestDamagedNumbers(t *testing.T) {
	r := redistest.Start(t).Client()
	defer r.Close()
	c := clientOf(r)
	require.NoError(t, c.SetLimit(t.Context(), "h", durable.Limit{Concurrency: 5}))
	key := func(name string) string { return "{tickless:0}:" + name }
	numbers := []string{"armed", "called", "fence", "claimed", "done", "retried", "died", "crashed", "released", "refused", "cancelled"}
	damage := func(rdb *redis.Client) {
		for _, name := range numbers {
			require.NoError(t, rdb.HSet(t.Context(), key("meta"), name, "1\x00x").Err())
		}
		require.NoError(t, rdb.HSet(t.Context(), key("limits"), "1:h", "5 x").Err())
	}
	damage(r)
	runs := make(chan string, 100)
	w := durable.NewWorker(c)
	w.Handle("h", func(_ context.Context, d durable.Delivery) error {
		runs <- d.Key
		if d.Attempt == 1 && d.Key[0] == 'f' {
			return durable.RetryAfter(errors.New("once"), time.Millisecond)
		}
		if d.Key[0] == 'd' {
			return durable.NoRetry(errors.New("dead"))
		}
		return nil
	})
	done := make(chan error, 1)
	go func() { done <- w.Run(t.Context()) }()
	for i := range 5 {
		for _, kind := range "dfk" {
			_, err := c.Schedule(t.Context(), durable.Task{Key: fmt.Sprintf("%c%d", kind, i), Handler: "h"}, durable.After(0))
			require.NoError(t, err)
		}
		_, err := c.Schedule(t.Context(), durable.Task{Key: "cancelled", Handler: "h"}, durable.After(time.Hour))
		require.NoError(t, err)
		_, err = c.Cancel(t.Context(), "cancelled")
		require.NoError(t, err)
	}
	for range 20 {
		<-runs
	}
	require.NoError(t, w.Shutdown(t.Context()))
	<-done
	damage(r)
	_, err := c.Stats(t.Context())
	require.NoError(t, err)
	h, err := c.Check(t.Context())
	require.NoError(t, err)
	for _, name := range append(numbers, "limit 1:h") {
		require.Contains(t, fmt.Sprint(h.Warnings), fmt.Sprintf("%q", name))
	}
	rep, err := c.Repair(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, len(numbers)+1, rep.Orphaned)
	h, err = c.Check(t.Context())
	require.NoError(t, err)
	require.NotContains(t, fmt.Sprint(h.Warnings), "damaged")
	rep, err = c.Repair(t.Context())
	require.NoError(t, err)
	require.Zero(t, rep.Orphaned)
}
