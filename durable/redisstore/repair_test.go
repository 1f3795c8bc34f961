package redisstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/redisstore/internal/redistest"
	"github.com/tickless/tickless/durable/store"
)

func TestRepair_PutsRightWhatIsDamaged(t *testing.T) {
	ctx := context.Background()
	r := redistest.Start(t).Client()
	defer r.Close()
	c := newClient(r)
	key := c.key
	for i := range 1000 {
		_, err := c.Schedule(ctx, durable.Task{Key: fmt.Sprint(i), Handler: "h"}, durable.After(time.Hour))
		require.NoError(t, err)
	}
	rep, err := c.Repair(ctx)
	require.NoError(t, err)
	require.GreaterOrEqual(t, rep.Looked, int64(2000))
	rep.Looked = 0
	require.Zero(t, rep, "Repair of an undamaged store")

	for _, id := range []string{"nowhere", "run but nowhere", "lease without run", "due and dead", "due and lease", "lease and dead"} {
		_, err := c.Schedule(ctx, durable.Task{Key: id, Handler: "h"}, durable.After(time.Hour))
		require.NoError(t, err)
	}
	const held = "1790000000000000 1 0 1780000000000000 - - 1:h"
	must := func(err error) { t.Helper(); require.NoError(t, err) }
	soon := float64(time.Now().Add(time.Hour).UnixMicro())
	must(r.ZRem(ctx, key("nowhere", dueOf("h")), "nowhere").Err())
	must(r.ZRem(ctx, key("run but nowhere", dueOf("h")), "run but nowhere").Err())
	must(r.HSet(ctx, key("run but nowhere", "run"), "run but nowhere", held).Err())
	must(r.ZRem(ctx, key("lease without run", dueOf("h")), "lease without run").Err())
	must(r.ZAdd(ctx, key("lease without run", "lease"), redis.Z{Score: soon, Member: "lease without run"}).Err())
	must(r.ZAdd(ctx, key("due and dead", "dead"), redis.Z{Score: soon, Member: "due and dead"}).Err())
	must(r.ZAdd(ctx, key("due and lease", "lease"), redis.Z{Score: soon, Member: "due and lease"}).Err())
	must(r.HSet(ctx, key("due and lease", "run"), "due and lease", held).Err())
	must(r.ZRem(ctx, key("lease and dead", dueOf("h")), "lease and dead").Err())
	must(r.ZAdd(ctx, key("lease and dead", "lease"), redis.Z{Score: soon, Member: "lease and dead"}).Err())
	must(r.ZAdd(ctx, key("lease and dead", "dead"), redis.Z{Score: soon, Member: "lease and dead"}).Err())
	must(r.HSet(ctx, key("lease and dead", "run"), "lease and dead", held).Err())
	for _, name := range []string{dueOf("h"), "lease", "dead"} {
		must(r.ZAdd(ctx, key("orphan", name), redis.Z{Score: soon, Member: "orphan"}).Err())
	}
	must(r.HSet(ctx, key("orphan", "run"), "orphan", "damaged").Err())
	must(r.HSet(ctx, key("orphan", "err"), "orphan", "damaged").Err())

	// Entries of kinds.
	_, err = c.Schedule(ctx, durable.Task{Key: "two kinds", Handler: "h"}, durable.After(time.Hour))
	must(err)
	must(r.ZAdd(ctx, key("two kinds", dueOf("h2")), redis.Z{Score: soon, Member: "two kinds"}).Err())
	must(r.ZAdd(ctx, key("two kinds", "kinds"), redis.Z{Score: soon, Member: "2:h2"}).Err())
	_, err = c.Schedule(ctx, durable.Task{Key: "kind unknown", Handler: "h3"}, durable.After(time.Hour))
	must(err)
	must(r.ZRem(ctx, key("kind unknown", "kinds"), "2:h3").Err())
	must(r.ZAdd(ctx, key("two kinds", "kinds"), redis.Z{Score: soon, Member: "5:empty"}).Err())
	must(r.HSet(ctx, key("two kinds", "follows"), "two kinds", "orphan").Err())

	rep, err = c.Repair(ctx)
	require.NoError(t, err)
	rep.Looked = 0
	require.Equal(t, durable.Repair{Requeued: 4, Doubled: 3, Orphaned: 7}, rep)
	rep, err = c.Repair(ctx)
	require.NoError(t, err)
	rep.Looked = 0
	require.Zero(t, rep, "the second Repair")
	for id, want := range map[string]durable.State{
		"nowhere": durable.Pending, "run but nowhere": durable.Pending, "lease without run": durable.Pending,
		"due and dead": durable.Pending, "due and lease": durable.Running, "lease and dead": durable.Running,
		"two kinds": durable.Pending, "kind unknown": durable.Pending,
	} {
		info, err := c.Get(ctx, id)
		require.NoError(t, err)
		require.Equal(t, want, info.State, id)
	}
	_, err = c.Get(ctx, "orphan")
	require.ErrorIs(t, err, durable.ErrNotFound)
}

// A crash leaves the dead letter of a repeating task in no index. Repair must make it a
// dead letter again, not a pending task.
func TestRepair_TornDeadLetterOfARepeatingTask(t *testing.T) {
	ctx := context.Background()
	r := redistest.Start(t).Client()
	defer r.Close()
	for _, x := range []struct {
		name string
		torn []string // keys that are missing
		runs int
	}{
		{"place", []string{"dead"}, 2},
		{"place_and_run", []string{"dead", "run"}, 1},
		{"all_but_the_record", []string{"dead", "run", "err"}, 1},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := newClient(r, WithShards(1), WithName(x.name))
			_, err := c.Schedule(ctx, durable.Task{Key: "k", Handler: "h", Every: time.Hour}, durable.After(0))
			require.NoError(t, err)
			w := &crasher{t: t, c: c}
			for _, next := range []time.Duration{0, time.Hour} {
				for id, token := range w.claim() {
					w.report(store.Failed, id, token, store.After(next))
				}
			}
			id := store.DeadID("k")
			e, err := c.s.Get(ctx, 0, id)
			require.NoError(t, err)
			require.Equal(t, 2, e.Runs)
			for _, name := range x.torn {
				if name == "dead" {
					require.NoError(t, r.ZRem(ctx, c.key("k", name), id).Err())
				} else {
					require.NoError(t, r.HDel(ctx, c.key("k", name), id).Err())
				}
			}
			rep, err := c.Repair(ctx)
			require.NoError(t, err)
			require.EqualValues(t, 1, rep.Requeued)
			e, err = c.s.Get(ctx, 0, id)
			require.NoError(t, err)
			require.Equal(t, store.Dead, e.State)
			require.Equal(t, x.runs, e.Runs)
			require.Less(t, time.Since(e.At.Std()), time.Hour)
			require.Empty(t, w.claim())
			rep, err = c.Repair(ctx)
			require.NoError(t, err)
			rep.Looked = 0
			require.Zero(t, rep, "the second Repair")
			out, err := c.Requeue(ctx, id, durable.After(0))
			require.NoError(t, err)
			require.Equal(t, durable.Moved, out)
			require.Len(t, w.claim(), 1)
		})
	}
}

// Workers repair a running task whose lease entry is missing.
func TestWorker_FindsATaskWithoutALease(t *testing.T) {
	ctx := context.Background()
	r := redistest.Start(t).Client()
	defer r.Close()
	c := newClient(r, WithShards(2))
	c.s.config.maxCheckInterval = 100 * time.Millisecond
	_, err := c.Schedule(ctx, durable.Task{Key: "k", Handler: "h"}, durable.After(0))
	require.NoError(t, err)
	require.Len(t, (&crasher{t: t, c: c, shard: store.ShardOf("k", 2)}).claim(), 1)
	require.NoError(t, r.ZRem(ctx, c.key("k", "lease"), "k").Err())
	st, err := c.Stats(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 1, st.Astray)
	h, err := c.Check(ctx)
	require.NoError(t, err)
	require.Contains(t, h.Warnings[len(h.Warnings)-1], "1 tasks are in no index")
	w := durable.NewWorker(c.Client)
	ran := make(chan string, 10)
	w.Handle("h", func(_ context.Context, d durable.Delivery) error {
		ran <- d.Key
		return nil
	})
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	require.Equal(t, "k", <-ran)
	require.Eventually(t, func() bool {
		st, err := c.Stats(ctx)
		return err == nil && st.Astray == 0 && st.Running == 0
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, w.Shutdown(ctx))
	require.NoError(t, <-done)
}
