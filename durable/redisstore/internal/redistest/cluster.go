package redistest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// slotCount is the number of hash slots of a Redis Cluster.
const slotCount = 16384

// A Cluster is a running Redis Cluster.
type Cluster struct {
	// Servers are the initial masters, followed by the replicas in the order of their
	// masters.
	Servers     []*Server
	MasterCount int
}

// With FastFailover a master counts as failed after two seconds of silence. A pause of
// the machine may then also cause a failover.
var FastFailover = []string{"--cluster-node-timeout", "2000"}

// StartCluster starts a cluster. Its masters share the slots equally, and each has this
// number of replicas. Every server gets the arguments args.
func StartCluster(tb testing.TB, masters, replicas int, args ...string) *Cluster {
	tb.Helper()
	c := &Cluster{MasterCount: masters}
	for range masters * (1 + replicas) {
		c.Servers = append(c.Servers, Start(tb, append([]string{
			"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf",
			"--repl-diskless-sync-delay", "0",
		}, args...)...))
	}
	if err := c.formCluster(replicas); err != nil {
		tb.Fatalf("redistest: forming the cluster: %v\n%s", err, c.Servers[0].ReadLog())
	}
	return c
}

func (c *Cluster) formCluster(replicas int) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var clients []*redis.Client
	for _, s := range c.Servers {
		client := s.Client()
		defer client.Close()
		clients = append(clients, client)
	}
	for i, client := range clients {
		// Give the masters distinct epochs: agreeing on epochs would take a while.
		if err := client.Do(ctx, "cluster", "set-config-epoch", i+1).Err(); err != nil {
			return err
		}
	}
	for i, client := range clients[:c.MasterCount] {
		first, last := i*slotCount/c.MasterCount, (i+1)*slotCount/c.MasterCount-1
		if err := client.ClusterAddSlotsRange(ctx, first, last).Err(); err != nil {
			return err
		}
	}
	for _, s := range c.Servers[1:] {
		if err := clients[0].Do(ctx, "cluster", "meet", "127.0.0.1", s.Port).Err(); err != nil {
			return err
		}
	}
	if err := pollUntil(ctx, func() bool {
		for _, client := range clients {
			if n := strings.Count(client.ClusterNodes(ctx).Val(), "\n"); n != len(clients) {
				return false
			}
		}
		return true
	}); err != nil {
		return fmt.Errorf("the servers do not form a cluster: %w", err)
	}
	for i := range c.MasterCount {
		id := clients[i].ClusterMyID(ctx).Val()
		for j := range replicas {
			replica := clients[c.MasterCount+i*replicas+j]
			if err := pollUntil(ctx, func() bool { return replica.ClusterReplicate(ctx, id).Err() == nil }); err != nil {
				return fmt.Errorf("replicas: %w", err)
			}
		}
	}
	return pollUntil(ctx, func() bool {
		return !slices.ContainsFunc(c.Servers, func(s *Server) bool { return !isHealthy(ctx, s) })
	})
}

// isHealthy reports whether a server considers the cluster healthy. A replica must also be
// connected to its master.
func isHealthy(ctx context.Context, s *Server) bool {
	client := s.Client()
	defer client.Close()
	if !strings.Contains(client.ClusterInfo(ctx).Val(), "cluster_state:ok") {
		return false
	}
	replicationInfo := client.Info(ctx, "replication").Val()
	return strings.Contains(replicationInfo, "role:master") || strings.Contains(replicationInfo, "master_link_status:up")
}

// Client returns a client that reloads the cluster's state every second. opts change its
// options. The caller closes the client.
func (c *Cluster) Client(opts ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	o := &redis.ClusterOptions{ClusterStateReloadInterval: time.Second}
	for _, s := range c.Servers {
		o.Addrs = append(o.Addrs, s.Addr)
	}
	for _, f := range opts {
		f(o)
	}
	return redis.NewClusterClient(o)
}

// pollUntil waits until ok returns true or the context ends.
func pollUntil(ctx context.Context, ok func() bool) error {
	for !ok() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}
