package redisstore

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/redisstore/internal/redistest"
	"github.com/tickless/tickless/durable/store"
)

// A waiting worker gets a free permit within the time of a wake-up: the worker that
// returns a permit takes the next one, or the others are woken.
func TestLimit_PermitsAreTakenAtOnce(t *testing.T) {
	rdb := redistest.Start(t).Client()
	ctx := context.Background()
	c := newClient(rdb, WithShards(1))
	require.NoError(t, c.SetLimit(ctx, "slow", durable.Limit{Concurrency: 3}))
	var mu sync.Mutex
	running, most, done, names := 0, 0, 0, make(map[int]int)
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return done
	}
	var workers []*durable.Worker
	for i := range 3 {
		w := durable.NewWorker(newClient(rdb, WithShards(1)).Client, durable.WithConcurrency(4))
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
	require.Eventually(t, func() bool { return count() == 60 }, 4*time.Second, time.Millisecond, "slower than by looking now and then")
	t.Logf("60 tasks of 20 ms, 3 at a time, took %v; by worker %v; claims %d and %d", time.Since(begin), names,
		workers[0].Stats().Claims, workers[1].Stats().Claims)

	// A worker that leaves does not take the next permit.
	require.NoError(t, c.SetLimit(ctx, "slow", durable.Limit{Concurrency: 1}))
	schedule(3)
	require.NoError(t, workers[0].Shutdown(ctx))
	require.Eventually(t, func() bool { return count() == 63 }, 3*time.Second, time.Millisecond)
	require.Equal(t, 3, most)
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
	key := c.s.shards[0].keys[keyMeta]
	key = key[:len(key)-len("meta")] + "limits"
	require.NoError(t, rdb.HSet(ctx, key, "1:h", "3 0 0 70 0 0 0").Err())
	require.Equal(t, 0, claim(2))
	_, err := c.Repair(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, claim(3))
	require.Equal(t, 0, claim(4))
}
