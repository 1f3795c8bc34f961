package redisstore

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/redisstore/internal/redistest"
	"github.com/tickless/tickless/durable/store"
)

// When a task with a limit ends, the next task starts immediately, without a recheck. The
// same worker or another worker starts it.
func TestLimit_PermitsAreTakenAtOnce(t *testing.T) {
	rdb := redistest.Start(t).Client()
	ctx := context.Background()
	c := newClient(rdb, WithShards(1))
	require.NoError(t, c.SetLimit(ctx, "slow", durable.Limit{Concurrency: 3}))
	var mu sync.Mutex
	running, most, done, names := 0, 0, 0, make(map[int]int)
	await := func(n int) {
		for count := -1; count < n; time.Sleep(time.Millisecond) {
			mu.Lock()
			count = done
			mu.Unlock()
		}
	}
	var workers []*durable.Worker
	for i := range 3 {
		w := durable.NewWorker(newClient(rdb, WithShards(1), WithRecheck(time.Hour)).Client, durable.WithConcurrency(4))
		if i < 2 {
			w.Handle("slow", func(context.Context, durable.Delivery) error {
				mu.Lock()
				running, names[i] = running+1, names[i]+1
				most = max(most, running)
				mu.Unlock()
				time.Sleep(20 * time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				running, done = running-1, done+1
				return nil
			})
		} else {
			w.Handle("other", func(context.Context, durable.Delivery) error { return nil })
		}
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		t.Cleanup(func() {
			require.NoError(t, w.Shutdown(ctx))
			<-ended
		})
		workers = append(workers, w)
	}
	time.Sleep(50 * time.Millisecond)
	schedule := func(n int) {
		var items []durable.Item
		for i := range n {
			items = append(items, durable.Item{Task: durable.Task{Key: fmt.Sprint("k", i), Handler: "slow"}, When: durable.After(0)})
		}
		_, err := c.ScheduleBatch(ctx, items)
		require.NoError(t, err)
	}
	begin := time.Now()
	schedule(60)
	await(60)
	t.Logf("60 tasks of 20 ms, 3 at a time, took %v; by worker %v; claims %d and %d", time.Since(begin), names,
		workers[0].Stats().Claims, workers[1].Stats().Claims)

	// A worker that shuts down does not start the next task.
	require.NoError(t, c.SetLimit(ctx, "slow", durable.Limit{Concurrency: 1}))
	schedule(3)
	require.NoError(t, workers[0].Shutdown(ctx))
	await(63)
	require.Equal(t, 3, most)
}

// limited returns a store with due tasks of the handler h. Only one of them may run at
// a time.
func limited(t *testing.T) (*client, *redis.Client) {
	rdb := redistest.Start(t).Client()
	c := newClient(rdb, WithShards(1))
	require.NoError(t, c.SetLimit(t.Context(), "h", durable.Limit{Concurrency: 1}))
	fill(t, c, 10, durable.After(0), nil)
	return c, rdb
}

// Repair corrects the number of running tasks.
func TestLimit_Repair(t *testing.T) {
	rdb := redistest.Start(t).Client()
	ctx := context.Background()
	c := newClient(rdb, WithShards(1))
	require.NoError(t, c.SetLimit(ctx, "h", durable.Limit{Concurrency: 3}))
	fill(t, c, 10, durable.After(0), nil)
	claim := func(number int64) int {
		a, err := c.s.Do(ctx, 0, store.Stamp{Sender: "w", Number: number},
			store.Round{Lease: time.Minute, MaxCrashes: 3, Claim: store.Claim{Asked: true, Max: 2, Handlers: []string{"h"}}})
		require.NoError(t, err)
		return len(a.Tasks)
	}
	require.Equal(t, 2, claim(1))
	require.NoError(t, rdb.HSet(ctx, c.key("", "limits"), "1:h", "3 0 0 70 0 0 0").Err())
	require.Equal(t, 0, claim(2))
	_, err := c.Repair(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, claim(3))
	require.Equal(t, 0, claim(4))
}

// A crash may leave a lease without a task. The lease counts towards the limit until it
// ends or Repair removes it.
func TestLimit_PermitOfATaskWithoutARecord(t *testing.T) {
	for name, lease := range map[string]time.Duration{"the lease ends": time.Millisecond, "repair": time.Hour} {
		t.Run(name, func(t *testing.T) {
			c, rdb := limited(t)
			w := &crasher{t: t, c: c, lease: lease}
			got := w.claim()
			require.Len(t, got, 1)
			for id := range got {
				require.NoError(t, rdb.HDel(t.Context(), c.key(id, "task"), id).Err())
			}
			time.Sleep(5 * time.Millisecond)
			if name == "repair" {
				require.Empty(t, w.claim())
				_, err := c.Repair(t.Context())
				require.NoError(t, err)
			}
			require.Len(t, w.claim(), 1)
		})
	}
}

// Workers correct the number of running tasks without a call of Repair.
func TestLimit_WorkersFindALostPermit(t *testing.T) {
	c, rdb := limited(t)
	c.s.config.maxCheckInterval = 100 * time.Millisecond
	require.NoError(t, rdb.HSet(t.Context(), c.key("", "limits"), "1:h", "1 0 0 1 0 1 0").Err())
	require.Empty(t, (&crasher{t: t, c: c}).claim())
	w := durable.NewWorker(c.Client)
	ran := make(chan struct{}, 10)
	w.Handle("h", func(context.Context, durable.Delivery) error {
		ran <- struct{}{}
		return nil
	})
	ended := make(chan error, 1)
	go func() { ended <- w.Run(context.Background()) }()
	select {
	case <-ran:
	case <-time.After(20 * time.Second):
		t.Error("no worker has returned the lost permit")
	}
	require.NoError(t, w.Shutdown(context.Background()))
	require.NoError(t, <-ended)
}
