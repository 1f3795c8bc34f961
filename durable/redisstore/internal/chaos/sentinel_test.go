//go:build unix

package chaos

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/redisstore/internal/redistest"
)

// An administrator requests a failover from a Sentinel. Commands that the old master had
// not replicated are lost, and nothing reports this loss.
func TestFault_SentinelFailover(t *testing.T) {
	long(t)
	master := redistest.Start(t)
	replica := redistest.Start(t, "--replicaof", "127.0.0.1", strconv.Itoa(master.Port))
	addr := redistest.StartSentinel(t, master)
	watch := redis.NewSentinelClient(&redis.Options{Addr: addr})
	defer watch.Close()
	x := newTrial(t, redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "it", SentinelAddrs: []string{addr}}), addr)
	x.eventually(time.Minute, "the Sentinel knows the replica", func() bool {
		known, err := watch.Replicas(t.Context(), "it").Result()
		return err == nil && len(known) == 1 && known[0]["master-link-status"] == "ok"
	})
	x.order.Sentinel = true
	x.start(x.order)
	x.start(x.order)
	worst := x.traffic(8 * time.Second)
	time.Sleep(time.Second)
	begin := time.Now()
	require.NoError(t, watch.Failover(t.Context(), "it").Err())
	old, r := master.Client(), replica.Client()
	defer old.Close()
	defer r.Close()
	x.eventually(time.Minute, "the replica is the master", func() bool {
		return info(r, "replication", "role:master") != "" && info(old, "replication", "role:slave") != ""
	})
	took := time.Since(begin)
	x.doubtful = append(x.doubtful, span{begin.Add(-time.Second), begin.Add(took)})
	schedule := worst()
	x.note("SENTINEL FAILOVER, over after %s; outage for Schedule %s; %d calls failed and were repeated", short(took), short(schedule), x.failures)
	x.done(time.Minute)
}
