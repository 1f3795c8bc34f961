//go:build unix

package chaos

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/redisstore"
)

// info returns the lines of INFO that begin with a prefix.
func info(r redis.Cmdable, section, prefix string) string {
	var out []string
	for line := range strings.Lines(r.Info(context.Background(), section).Val()) {
		if strings.HasPrefix(line, prefix) {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return strings.Join(out, " ")
}

func TestFault_ServerKilled(t *testing.T) {
	for _, fsync := range []string{"everysec", "always"} {
		t.Run("AOF"+fsync, func(t *testing.T) {
			x, s := onServer(t, "--appendonly", "yes", "--appendfsync", fsync)
			// One kill loses nothing, whatever it interrupts. docs/operating.md describes
			// what several kills may lose.
			times := 1
			if os.Getenv("TICKLESS_CHAOS") == "long" {
				times, x.torn = 3, true
			}
			x.start(x.order)
			x.start(x.order)
			var all sync.WaitGroup
			all.Go(func() { x.schedule(0, 20_000, soon(4*time.Second), "") })
			all.Go(func() { // during the whole test
				for i := 20_000; i < 20_300; i++ {
					x.schedule(i, 1, now, "")
					time.Sleep(10 * time.Millisecond)
				}
			})
			for range times {
				time.Sleep(time.Second)
				before := time.Now()
				s.Kill()
				x.kills++
				if fsync == "everysec" {
					x.doubtful = append(x.doubtful, span{before.Add(-2 * time.Second), time.Now()})
				}
				time.Sleep(200 * time.Millisecond)
				s.Restart()
			}
			all.Wait()
			require.Equal(t, times, x.kills)
			x.note("redis-server killed with -9 %d times while tasks were scheduled and run; %d calls of ScheduleBatch failed and were repeated",
				x.kills, x.failures)
			x.done(30 * time.Second)
		})
	}
}

func TestFault_ScriptsFlushed(t *testing.T) {
	x, s := onServer(t)
	r := s.Client()
	defer r.Close()
	ctx, cancel := context.WithCancel(context.Background())
	var flusher sync.WaitGroup
	var flushes atomic.Int64
	flusher.Go(func() {
		for ctx.Err() == nil {
			if r.ScriptFlush(ctx).Err() == nil {
				flushes.Add(1)
			}
			time.Sleep(2 * time.Millisecond)
		}
	})
	x.work(x.r, nil)
	const each, enough = 5000, 100
	for from := 0; from == 0 || flushes.Load() <= enough && from < 20*each; from += each { // a busy machine flushes seldom
		x.schedule(from, each, soon(2*time.Second), "")
		x.drain(30 * time.Second)
	}
	cancel()
	flusher.Wait()
	require.Greater(t, flushes.Load(), int64(enough))
	missed := info(r, "errorstats", "errorstat_NOSCRIPT")
	require.NotEmpty(t, missed)
	x.note("%d times SCRIPT FLUSH; %s", flushes.Load(), missed)
	x.done(time.Second)
	require.Zero(t, x.failures)
	require.Zero(t, x.dups)
}

func TestFault_ServerStalls(t *testing.T) {
	for _, d := range []time.Duration{time.Second, 10 * time.Second, time.Minute} {
		t.Run(d.String(), func(t *testing.T) {
			if d > time.Second {
				long(t)
			}
			x, s := onServer(t)
			x.order.Lease = 2 * time.Second
			x.start(x.order)
			x.schedule(0, 3000, soon(3*time.Second), "")
			time.Sleep(time.Second)
			s.Suspend()
			begin := time.Now()
			time.Sleep(d)
			s.Resume()
			x.note("redis-server stopped for %v", time.Since(begin).Round(time.Millisecond))
			x.done(60 * time.Second)
		})
	}
}

func TestFault_HalfOpen(t *testing.T) {
	x, s := onServer(t)
	p := newProxy(t, s.Addr)
	p.serve()
	o := x.order
	o.Addrs, o.Lease = []string{p.addr()}, 2*time.Second
	x.start(o)
	x.schedule(0, 3000, soon(4*time.Second), "")
	x.eventually(time.Minute, "the first task is run", func() bool { return x.l.total() > 0 })
	time.Sleep(1500 * time.Millisecond)
	n := p.swallow()
	require.Positive(t, n)
	x.note("%d connections half-open: all sent data is lost", n)
	x.done(60 * time.Second)
}

func TestFault_SlowNetwork(t *testing.T) {
	x, s := onServer(t)
	p := newProxy(t, s.Addr)
	p.delay = 100 * time.Millisecond
	p.serve()
	o := x.order
	o.Addrs, o.Concurrency = []string{p.addr()}, 256
	far := redis.NewClient(&redis.Options{Addr: p.addr()})
	defer far.Close()
	require.NoError(t, far.Ping(context.Background()).Err())
	begin := time.Now()
	require.NoError(t, far.Ping(context.Background()).Err())
	took := time.Since(begin)
	require.GreaterOrEqual(t, took, 200*time.Millisecond)
	x.start(o)
	x.schedule(0, 2000, soon(3*time.Second), "")
	x.note("a round trip takes %v", took.Round(time.Millisecond))
	x.done(60 * time.Second)
}

func TestFault_OutOfMemory(t *testing.T) {
	x, s := onServer(t)
	ctx := context.Background()
	require.NoError(t, x.r.ConfigSet(ctx, "maxmemory-policy", "noeviction").Err())
	require.NoError(t, x.r.ConfigSet(ctx, "maxmemory", "12mb").Err())
	var refused error
	for i := 0; i < 200_000 && refused == nil; i += 100 {
		var items []durable.Item
		for j := range 100 {
			items = append(items, durable.Item{Task: durable.Task{Key: fmt.Sprint(keyPrefix, i+j), Handler: "h",
				Body: []byte(bodyMark + strings.Repeat("x", 1000))}, When: durable.After(2 * time.Second)})
		}
		out, err := x.c.ScheduleBatch(ctx, items)
		refused = err
		for j, o := range out {
			if o == durable.Created {
				x.acked[items[j].Task.Key] = true
			}
		}
	}
	require.ErrorContains(t, refused, "OOM")
	r := s.Client()
	defer r.Close()
	require.NotEmpty(t, info(r, "errorstats", "errorstat_OOM"))
	x.note("maxmemory 12 MB, noeviction: Schedule fails with OOM, existing tasks are run")
	x.start(x.order)
	x.done(30 * time.Second)
}

func TestFault_ReadOnlyReplica(t *testing.T) {
	x, _ := onServer(t)
	ctx := context.Background()
	x.schedule(0, 100, func(int) durable.When { return durable.After(2 * time.Second) }, "")
	require.NoError(t, x.r.(*redis.Client).Do(ctx, "replicaof", "127.0.0.1", "1").Err())
	_, err := x.c.Schedule(ctx, durable.Task{Key: "k", Handler: "h"}, durable.After(0))
	require.ErrorContains(t, err, "READONLY")
	x.note("the server became a read-only replica and master again")
	x.start(x.order)
	time.Sleep(3 * time.Second)
	require.Zero(t, x.l.total())
	require.NoError(t, x.r.(*redis.Client).Do(ctx, "replicaof", "no", "one").Err())
	x.done(30 * time.Second)
}

func TestFault_BusyScript(t *testing.T) {
	x, s := onServer(t, "--busy-reply-threshold", "50")
	x.start(x.order)
	x.schedule(0, 2000, soon(3*time.Second), "")
	time.Sleep(time.Second)
	r := s.Client(func(o *redis.Options) { o.MaxRetries = -1; o.ReadTimeout = time.Minute })
	defer r.Close()
	ctx := context.Background()
	killed := make(chan error, 1)
	go func() { killed <- r.Eval(ctx, "while true do end", nil).Err() }()
	var busy error
	x.eventually(10*time.Second, "the server is busy", func() bool {
		busy = r.Get(ctx, "x").Err()
		return busy != nil && strings.HasPrefix(busy.Error(), "BUSY")
	})
	time.Sleep(2 * time.Second)
	require.NoError(t, r.ScriptKill(ctx).Err())
	require.ErrorContains(t, <-killed, "killed")
	x.note("another client's endless script, killed after 2 s; %s", info(r, "errorstats", "errorstat_BUSY"))
	x.done(30 * time.Second)
}

func TestFault_TwoVersions(t *testing.T) {
	x, _ := onServer(t)
	ctx := context.Background()
	x.work(x.r, nil)
	x.schedule(0, 500, soon(2*time.Second), "")
	wrong := newClient(x.r, redisstore.WithShards(32))
	for i := range 100 {
		_, err := wrong.Schedule(ctx, durable.Task{Key: fmt.Sprint("k", i), Handler: "h"}, durable.After(0))
		require.ErrorIs(t, err, durable.ErrSchema)
	}
	require.ErrorIs(t, durable.NewWorker(wrong).Run(ctx), durable.ErrSchema)
	_, err := wrong.Check(ctx)
	require.ErrorIs(t, err, durable.ErrSchema)
	// A later version has changed the schema of the queue with this name.
	later := newClient(x.r, redisstore.WithName("later"))
	_, err = later.Check(ctx)
	require.NoError(t, err)
	changed := 0
	for _, key := range x.r.Keys(ctx, "{later:*:meta").Val() {
		require.NoError(t, x.r.HSet(ctx, key, "schema", "99/16").Err())
		changed++
	}
	require.Positive(t, changed)
	_, err = later.Check(ctx)
	require.ErrorIs(t, err, durable.ErrSchema)
	require.ErrorIs(t, durable.NewWorker(later).Run(ctx), durable.ErrSchema)
	x.note("a client with 32 shards, and one of another version: both refused")
	x.done(20 * time.Second)
}

// All tasks of a day are overdue when the workers return.
func TestFault_LongDowntime(t *testing.T) {
	for _, n := range []int{20_000, 100_000, 1_000_000} {
		t.Run(fmt.Sprintf("%dk", n/1000), func(t *testing.T) {
			if n > 20_000 {
				long(t)
			}
			x, s := onServer(t)
			day := time.Now().Add(-24 * time.Hour)
			x.schedule(0, n, func(i int) durable.When { return durable.At(day.Add(time.Duration(i) * 86 * time.Millisecond)) }, "")
			other := s.Client()
			defer other.Close()
			ctx, cancel := context.WithCancel(context.Background())
			var took []time.Duration
			var pings sync.WaitGroup
			pings.Go(func() {
				for ctx.Err() == nil {
					begin := time.Now()
					if err := other.Set(ctx, "other", "x", 0).Err(); err == nil {
						took = append(took, time.Since(begin))
					}
					time.Sleep(time.Millisecond)
				}
			})
			begin := time.Now()
			x.work(x.r, nil)
			x.drain(2 * time.Minute)
			spent := time.Since(begin)
			cancel()
			pings.Wait()
			slices.Sort(took)
			require.NotEmpty(t, took)
			x.note("%d tasks of the last 24 hours: %.0f a second; another client's SET meanwhile: p50 %s, p99 %s, max %s", n,
				float64(n)/spent.Seconds(), short(took[len(took)/2]), short(took[len(took)*99/100]), short(took[len(took)-1]))
			x.done(time.Second)
			require.Zero(t, x.dups)
		})
	}
}
