//go:build unix

package chaos

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/redisstore/internal/redistest"
)

func onCluster(t *testing.T) (*trial, *redistest.Cluster) {
	t.Helper()
	c := redistest.StartCluster(t, 3, 1, redistest.FastFailover...)
	var addrs []string
	for _, s := range c.Servers {
		addrs = append(addrs, s.Addr)
	}
	return newTrial(t, c.Client(), addrs...), c
}

// traffic schedules a task every few milliseconds from several goroutines, for the
// duration d. worst returns the longest duration of a call.
func (x *trial) traffic(d time.Duration) (worst func() time.Duration) {
	var mu sync.Mutex
	var longest time.Duration
	var all sync.WaitGroup
	end := time.Now().Add(d)
	for g := range 8 {
		all.Go(func() {
			for i := g * 100_000; time.Now().Before(end); i++ {
				begin := time.Now()
				x.schedule(i, 1, now, "")
				mu.Lock()
				longest = max(longest, time.Since(begin))
				mu.Unlock()
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	return func() time.Duration {
		all.Wait()
		return longest
	}
}

func TestFault_ClusterMasterKilled(t *testing.T) {
	long(t)
	x, c := onCluster(t)
	x.start(x.order)
	x.start(x.order)
	worst := x.traffic(14 * time.Second)
	time.Sleep(2 * time.Second)
	old := masterOfSlot(context.Background(), c, 0)
	before := time.Now()
	old.Kill()
	killed := time.Now()
	// Replication is asynchronous, so the tasks of the last second may be lost.
	x.doubtful = append(x.doubtful, span{before.Add(-time.Second), killed})
	x.l.mu.Lock()
	x.l.since = killed
	x.l.mu.Unlock()
	x.eventually(20*time.Second, "there is a new master", func() bool {
		m := masterOfSlot(context.Background(), c, 0)
		return m != nil && m != old
	})
	elected := time.Since(killed)
	schedule := worst()
	x.drain(30 * time.Second)
	x.l.mu.Lock()
	late := x.l.worst
	x.l.mu.Unlock()
	x.note("a master of three killed with -9, node timeout 2 s; new master after %s; outage for Schedule %s, latest delivery of what was due after it %s (target 6 s)",
		short(elected), short(schedule), short(late))
	require.False(t, old.IsRunning())
	require.LessOrEqual(t, schedule, 6*time.Second)
	x.done(30 * time.Second)
}

// A master is killed. Commands that it has acknowledged but not replicated are lost:
// Redis Cluster does not promise more.
func TestFault_ClusterMasterKilledBeforeItReplicates(t *testing.T) {
	long(t)
	x, c := onCluster(t)
	x.loose = true
	ctx := context.Background()
	master := masterOfSlot(ctx, c, 0)
	var replica *redistest.Server
	for i, s := range c.Servers[:3] {
		if s == master {
			replica = c.Servers[3+i]
		}
	}
	x.schedule(0, 1000, func(int) durable.When { return durable.After(12 * time.Second) }, "")
	x.eventually(10*time.Second, "the replica has all data", func() bool {
		have, sent := offset(replica, "slave_repl_offset"), offset(master, "master_repl_offset")
		return have != "" && have == sent
	})
	replica.Suspend()
	// Write more data than the sockets hold: the replica still reads what the sockets
	// hold.
	x.schedule(1000, 2000, func(int) durable.When { return durable.After(12 * time.Second) }, strings.Repeat("x", 30_000))
	master.Kill()
	replica.Resume()
	x.start(x.order) // start waits for the new master
	x.eventually(30*time.Second, "there is a new master", func() bool {
		m := masterOfSlot(ctx, c, 0)
		return m != nil && m != master
	})
	x.note("replica frozen, then its master killed with -9: the tasks scheduled in between are lost")
	x.done(60 * time.Second)
	require.NotEmpty(t, x.lost, "the failover has lost no task")
	for _, key := range x.lost {
		var n int
		_, err := fmt.Sscanf(strings.TrimPrefix(key, keyPrefix), "%d", &n)
		require.NoError(t, err)
		require.True(t, n >= 1000 && n < 3000, "%s was replicated; the replica's log:\n%s", key, replica.ReadLog())
	}
}

// A frozen master is replaced. When it continues, it acknowledges commands until it
// learns of its replacement, and these commands are lost.
func TestFault_ClusterMasterFrozen(t *testing.T) {
	for _, how := range []string{"Plain", "MinReplicas"} {
		t.Run(how, func(t *testing.T) {
			long(t)
			x, c := onCluster(t)
			ctx := context.Background()
			if how == "MinReplicas" {
				for _, s := range c.Servers {
					r := s.Client()
					require.NoError(t, r.ConfigSet(ctx, "min-replicas-to-write", "1").Err())
					require.NoError(t, r.ConfigSet(ctx, "min-replicas-max-lag", "1").Err())
					r.Close()
				}
			}
			x.start(x.order)
			x.start(x.order)
			worst := x.traffic(24 * time.Second)
			time.Sleep(time.Second)
			changed := 0
			for _, d := range []time.Duration{2500 * time.Millisecond, 4 * time.Second, 5 * time.Second} {
				old := masterOfSlot(ctx, c, 0)
				frozen := time.Now()
				old.Suspend()
				time.Sleep(d)
				old.Resume()
				// Commands may be lost if they were not replicated, or if the old master
				// acknowledges them before it learns of its replacement.
				x.doubtful = append(x.doubtful, span{frozen.Add(-time.Second), time.Now().Add(time.Second)})
				time.Sleep(2 * time.Second)
				x.eventually(20*time.Second, "there is a master", func() bool { return masterOfSlot(ctx, c, 0) != nil })
				if masterOfSlot(ctx, c, 0) != old {
					changed++
				}
			}
			schedule := worst()
			x.done(60 * time.Second)
			x.note("the master of one shard in three stopped for 2.5, 4 and 5 s, node timeout 2 s; %d times another took its place; outage for Schedule %s; %d calls failed and were repeated",
				changed, short(schedule), x.failures)
			require.Positive(t, changed)
		})
	}
}

// offset returns the replication offset of a server.
func offset(s *redistest.Server, field string) string {
	r := s.Client()
	defer r.Close()
	return strings.TrimPrefix(info(r, "replication", field), field)
}

func TestFault_ClusterFailover(t *testing.T) {
	x, c := onCluster(t)
	ctx := context.Background()
	x.start(x.order)
	x.start(x.order)
	worst := x.traffic(6 * time.Second)
	time.Sleep(time.Second)
	old := masterOfSlot(ctx, c, 0)
	x.l.mu.Lock()
	x.l.since = time.Now()
	x.l.mu.Unlock()
	for i, s := range c.Servers[:3] {
		if s == old {
			r := c.Servers[3+i].Client()
			require.NoError(t, r.ClusterFailover(ctx).Err())
			r.Close()
		}
	}
	x.eventually(20*time.Second, "there is a new master", func() bool {
		m := masterOfSlot(ctx, c, 0)
		return m != nil && m != old
	})
	schedule := worst()
	x.drain(30 * time.Second)
	x.l.mu.Lock()
	late := x.l.worst
	x.l.mu.Unlock()
	x.note("CLUSTER FAILOVER; outage for Schedule %s, latest delivery %s", short(schedule), short(late))
	x.done(30 * time.Second)
}

func TestFault_SlotMigrated(t *testing.T) {
	x, c := onCluster(t)
	ctx := context.Background()
	x.start(x.order)
	x.start(x.order)
	x.schedule(900_000, 5000, soon(6*time.Second), "")
	worst := x.traffic(6 * time.Second)
	time.Sleep(time.Second)
	from, to := c.Servers[0], c.Servers[1]
	a, b := from.Client(), to.Client()
	defer a.Close()
	defer b.Close()
	moved, keys := 0, 0
	for _, due := range a.Keys(ctx, "*:due:*").Val() {
		if moved == 3 {
			break
		}
		slot := int(a.ClusterKeySlot(ctx, due).Val())
		aid, bid := a.ClusterMyID(ctx).Val(), b.ClusterMyID(ctx).Val()
		require.NoError(t, b.Do(ctx, "cluster", "setslot", slot, "importing", aid).Err())
		require.NoError(t, a.Do(ctx, "cluster", "setslot", slot, "migrating", bid).Err())
		for {
			some := a.ClusterGetKeysInSlot(ctx, slot, 1).Val() // one by one, so that the shard is split between nodes for a while
			if len(some) == 0 {
				break
			}
			require.NoError(t, a.Do(ctx, "migrate", "127.0.0.1", to.Port, some[0], 0, 5000).Err())
			keys++
			time.Sleep(20 * time.Millisecond)
		}
		for _, r := range []*redis.Client{b, a} {
			require.NoError(t, r.Do(ctx, "cluster", "setslot", slot, "node", bid).Err())
		}
		moved++
	}
	schedule := worst()
	require.Equal(t, 3, moved)
	require.Positive(t, keys)
	x.note("%d slots of live shards moved to another master, %d keys one by one; outage for Schedule %s; %d calls failed and were repeated", moved, keys,
		short(schedule), x.failures)
	x.done(60 * time.Second)
}

// masterOfSlot returns the master of a slot. During a failover it may return nil.
func masterOfSlot(ctx context.Context, c *redistest.Cluster, slot int) *redistest.Server {
	for _, s := range c.Servers {
		if !s.IsRunning() {
			continue
		}
		client := s.Client()
		//lint:ignore SA1019 what is to replace it needs Redis 7
		ranges, err := client.ClusterSlots(ctx).Result()
		client.Close()
		if err != nil {
			continue
		}
		for _, r := range ranges {
			if slot < r.Start || slot > r.End || len(r.Nodes) == 0 {
				continue
			}
			for _, m := range c.Servers {
				if m.IsRunning() && m.Addr == r.Nodes[0].Addr {
					return m
				}
			}
		}
	}
	return nil
}
