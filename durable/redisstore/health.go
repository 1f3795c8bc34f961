package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/tickless/tickless/durable/store"
)

// Check connects to the servers, and creates the store if it does not exist. If the store
// has another version or number of shards, the error wraps [store.ErrSchema].
//
// Check warns of a server that does not persist its data. If a server evicts keys, tasks
// may vanish at any time: Check then returns [ErrEviction] and the Health.
func (s *Store) Check(ctx context.Context) (store.Health, error) {
	var h store.Health
	if err := s.checkOpen(ctx); err != nil {
		return h, err
	}
	toCheck := s.shards[:1]
	if _, ok := s.redis.(*redis.Client); ok {
		toCheck = s.shards
	}
	var damage []string
	for _, sh := range toCheck {
		n, err := s.countUnindexed(ctx, sh)
		if err != nil {
			return h, s.explainCheck(err)
		}
		if n > 0 {
			damage = append(damage, fmt.Sprintf("shard %d: %d tasks are in no index; workers repair this within a minute", sh.index, n))
		}
	}
	nodes, err := s.readSettings(ctx)
	if err != nil {
		return h, s.explainCheck(err)
	}
	h, err = s.healthOf(nodes)
	h.Warnings = append(h.Warnings, damage...)
	return h, err
}

// Exists reports whether the store exists, with any number of shards. The other methods
// create the store; Exists does not.
func (s *Store) Exists(ctx context.Context) (bool, error) {
	if err := s.checkOpen(ctx); err != nil {
		return false, err
	}
	var exists bool
	var err error
	if ended := s.await(ctx, func() {
		exists, err = s.redis.HExists(ctx, s.shards[0].keys[keyMeta], "schema").Result()
	}); ended != nil {
		return false, ended
	}
	if err != nil {
		return false, s.explainCheck(err)
	}
	return exists, nil
}

// explainCheck is explain for Check and Exists. Permanent errors, such as a wrong
// password, also wrap store.ErrUnfit.
func (s *Store) explainCheck(err error) error {
	explained := explain(err)
	var reply redis.Error
	isReply := errors.As(err, &reply)
	_, single := s.redis.(*redis.Client)
	switch {
	case errors.Is(explained, store.ErrUnfit):
		return explained
	case single && isReply && strings.HasPrefix(reply.Error(), "MOVED "):
		return fmt.Errorf("%w: the server is a node of a Redis Cluster, which needs a redis.ClusterClient: %w", store.ErrUnfit, err)
	case !errors.Is(err, redis.ErrClosed) && (!isReply || isTemporary(reply)):
		return explained
	}
	return fmt.Errorf("%w: %w", store.ErrUnfit, explained)
}

// isTemporary reports whether a later call may succeed without a change of settings.
func isTemporary(reply redis.Error) bool {
	return outOfMemory(reply.Error()) || slices.ContainsFunc([]string{
		"LOADING", "CLUSTERDOWN", "MASTERDOWN", "READONLY", "MOVED", "ASK", "TRYAGAIN", "BUSY", "NOREPLICAS", "MISCONF",
		"ERR max number of clients reached",
	}, func(prefix string) bool { return strings.HasPrefix(reply.Error(), prefix) })
}

// readSettings returns the settings of each server: the fields of INFO, the setting save,
// and the server's address as addr. Some servers omit fields.
func (s *Store) readSettings(ctx context.Context) ([]map[string]string, error) {
	var mu sync.Mutex
	var nodes []map[string]string
	askServer := func(ctx context.Context, server *redis.Client) error {
		n := map[string]string{"addr": server.Options().Addr}
		maps.Copy(n, server.ConfigGet(ctx, "save").Val())
		for line := range strings.Lines(server.Info(ctx).Val()) {
			if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
				n[k] = v
			}
		}
		mu.Lock()
		defer mu.Unlock()
		nodes = append(nodes, n)
		return nil
	}
	var err error
	if ended := s.await(ctx, func() {
		switch r := s.redis.(type) {
		case *redis.Client:
			err = askServer(ctx, r)
		case *redis.ClusterClient:
			err = r.ForEachMaster(ctx, askServer)
		}
	}); ended != nil {
		return nil, ended
	}
	slices.SortFunc(nodes, func(a, b map[string]string) int { return strings.Compare(a["addr"], b["addr"]) })
	return nodes, err
}

// healthOf turns the servers' settings into warnings. It returns ErrEviction if a server
// evicts keys.
func (s *Store) healthOf(nodes []map[string]string) (h store.Health, evicting error) {
	var addrs []string
	for _, n := range nodes {
		addr, version, policy := n["addr"], n["redis_version"], n["maxmemory_policy"]
		addrs = append(addrs, strings.TrimSpace(addr+" "+version))
		warn := func(format string, args ...any) {
			h.Warnings = append(h.Warnings, addr+": "+fmt.Sprintf(format, args...))
		}
		switch {
		case policy == "":
			warn("it is unknown whether the server evicts keys, because it does not answer INFO")
		case policy == "noeviction":
		case n["maxmemory"] != "0":
			evicting = fmt.Errorf("%w (%s has %s)", ErrEviction, addr, policy)
		default:
			warn("maxmemory-policy is %s: if maxmemory is set, the server will evict tasks", policy)
		}
		switch {
		case version == "" || n["aof_enabled"] == "1":
		case n["save"] != "":
			warn("without appendonly, a crash loses the changes since the last snapshot")
		default:
			warn("without appendonly and snapshots, a restart loses every task")
		}
	}
	h.Store = fmt.Sprintf("%q in %d shards on %s", s.config.name, len(s.shards), strings.Join(addrs, ", "))
	return h, evicting
}
