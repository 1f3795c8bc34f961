package durable_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

// limited runs a test with a store of one shard and two Workers. Each Worker has a slow
// and a quick handler.
func limited(t *testing.T, f func(t *testing.T, c *durable.Client, slow, quick *load, workers []*durable.Worker)) {
	synctest.Test(t, func(t *testing.T) {
		c := durable.New(memstore.New(memstore.WithShards(1)), quiet)
		var slow, quick load
		var workers []*durable.Worker
		for range 2 {
			w := durable.NewWorker(c, durable.WithConcurrency(8), durable.WithLease(10*time.Second))
			w.Handle("slow", slow.handler(2*time.Second))
			w.Handle("quick", quick.handler(0))
			start(t, w)
			workers = append(workers, w)
		}
		f(t, c, &slow, &quick, workers)
	})
}

// Two Workers share a limit of six for the slow handler. They always use all six
// places, and the quick handler's tasks do not wait.
func TestClientSetLimit_Concurrency(t *testing.T) {
	limited(t, func(t *testing.T, c *durable.Client, slow, quick *load, workers []*durable.Worker) {
		require.NoError(t, c.SetLimit(ctx, "slow", durable.Limit{Concurrency: 6}))
		scheduleMany(t, c, "slow", 36, durable.After(0))
		time.Sleep(100 * time.Millisecond)
		before := time.Now()
		scheduleMany(t, c, "quick", 20, durable.After(0))
		synctest.Wait()
		require.Zero(t, time.Since(before))
		require.Equal(t, 20, quick.done)
		time.Sleep(12 * time.Second)
		synctest.Wait()
		require.Equal(t, 36, slow.done)
		require.Equal(t, 6, slow.most)
		claims := workers[0].Stats().Claims + workers[1].Stats().Claims
		require.Less(t, claims, int64(36+20+20), "claims for 56 tasks")
		time.Sleep(time.Hour)
		after := workers[0].Stats().Claims + workers[1].Stats().Claims
		require.LessOrEqual(t, after-claims, int64(2*60), "claims in an hour without tasks")
	})
}

func TestClientSetLimit_Rate(t *testing.T) {
	limited(t, func(t *testing.T, c *durable.Client, _, quick *load, workers []*durable.Worker) {
		require.NoError(t, c.SetLimit(ctx, "quick", durable.Limit{Rate: 4}))
		scheduleMany(t, c, "quick", 40, durable.After(0))
		time.Sleep(10 * time.Second)
		require.Equal(t, 40, quick.started())
		for i := range quick.begun[1:] {
			require.Equal(t, time.Second/4, quick.begun[i+1].Sub(quick.begun[i]))
		}
		require.Less(t, workers[0].Stats().Claims+workers[1].Stats().Claims, int64(100))
	})
}

// When an attempt ends, its worker starts the next task. The other workers are not
// woken.
func TestClientSetLimit_IdleWorkersSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := durable.New(memstore.New(memstore.WithShards(1)), quiet)
		require.NoError(t, c.SetLimit(ctx, "slow", durable.Limit{Concurrency: 5}))
		var slow load
		var workers []*durable.Worker
		for range 20 {
			w := durable.NewWorker(c, durable.WithConcurrency(1))
			w.Handle("slow", slow.handler(2*time.Second))
			start(t, w)
			workers = append(workers, w)
		}
		scheduleMany(t, c, "slow", 100, durable.After(0))
		time.Sleep(time.Second)
		before := claims(workers)
		time.Sleep(40 * time.Second)
		synctest.Wait()
		require.Equal(t, 100, slow.done)
		require.Less(t, claims(workers)-before, int64(100+3*20))
	})
}

func claims(workers []*durable.Worker) (n int64) {
	for _, w := range workers {
		n += w.Stats().Claims
	}
	return n
}

// A limit is set and removed while tasks are running and waiting.
func TestClientSetLimit_WhileTasksRun(t *testing.T) {
	limited(t, func(t *testing.T, c *durable.Client, slow, _ *load, _ []*durable.Worker) {
		scheduleMany(t, c, "slow", 60, durable.After(0))
		time.Sleep(time.Second)
		require.Equal(t, 12, slow.started())
		require.NoError(t, c.SetLimit(ctx, "slow", durable.Limit{Concurrency: 2}))
		time.Sleep(2 * time.Second)
		require.Equal(t, 14, slow.started())
		all, err := c.Limits(ctx)
		require.NoError(t, err)
		require.Equal(t, map[string]durable.Limit{"slow": {Concurrency: 2}}, all)
		require.NoError(t, c.SetLimit(ctx, "slow", durable.Limit{}))
		synctest.Wait()
		require.Equal(t, 24, slow.started())
		all, err = c.Limits(ctx)
		require.NoError(t, err)
		require.Empty(t, all)
	})
}

func TestClientSetLimit_Refuses(t *testing.T) {
	c := durable.New(memstore.New(memstore.WithShards(2)), quiet)
	require.ErrorIs(t, c.SetLimit(ctx, "h", durable.Limit{Concurrency: 1}), durable.ErrInvalid)
	c = durable.New(memstore.New(memstore.WithShards(1)), quiet)
	for _, l := range []durable.Limit{{Concurrency: -1}, {Rate: -1}, {Rate: math.NaN()}, {Rate: math.Inf(1)}, {Rate: 1e-11}, {Rate: 1e308}} {
		require.ErrorIs(t, c.SetLimit(ctx, "h", l), durable.ErrInvalid, l)
	}
	require.ErrorIs(t, c.SetLimit(ctx, "", durable.Limit{Concurrency: 1}), durable.ErrInvalid)
	require.NoError(t, c.SetLimit(ctx, "h", durable.Limit{}), "there is no limit to remove")
}
