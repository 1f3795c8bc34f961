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
	checkedShards := s.shards[:1]
	if _, ok := s.client.(*redis.Client); ok {
		checkedShards = s.shards
	}
	var damage []string
	for _, sh := range checkedShards {
		n, numbers, err := s.countUnindexed(ctx, sh)
		if err != nil {
			return h, s.toCheckError(err)
		}
		if len(numbers) > 0 {
			damage = append(damage, fmt.Sprintf("shard %d: these numbers are damaged: %q; workers correct them within a minute", sh.index, numbers))
		}
		if n > 0 {
			damage = append(damage, fmt.Sprintf("shard %d: %d tasks are in no index; workers repair this within a minute", sh.index, n))
		}
	}
	nodes, err := s.readSettings(ctx)
	if err != nil {
		return h, s.toCheckError(err)
	}
	h, err = s.healthFromSettings(nodes)
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
	if ended := s.callWithContext(ctx, func() {
		exists, err = s.client.HExists(ctx, s.shards[0].keys[keyMeta], "schema").Result()
	}); ended != nil {
		return false, ended
	}
	if err != nil {
		return false, s.toCheckError(err)
	}
	return exists, nil
}

// toCheckError is toStoreError for Check and Exists. Permanent errors, such as a wrong
// password, also wrap store.ErrUnfit.
func (s *Store) toCheckError(err error) error {
	storeErr := toStoreError(err)
	var reply redis.Error
	isServerReply := errors.As(err, &reply)
	_, single := s.client.(*redis.Client)
	switch {
	case errors.Is(storeErr, store.ErrUnfit):
		return storeErr
	case single && isServerReply && strings.HasPrefix(reply.Error(), "MOVED "):
		return fmt.Errorf("%w: the server is a node of a Redis Cluster, which needs a redis.ClusterClient: %w", store.ErrUnfit, err)
	case !errors.Is(err, redis.ErrClosed) && (!isServerReply || isTemporaryError(reply)):
		return storeErr
	}
	return fmt.Errorf("%w: %w", store.ErrUnfit, storeErr)
}

// isTemporaryError reports whether a later call may succeed without a change of settings.
func isTemporaryError(reply redis.Error) bool {
	return isOutOfMemory(reply.Error()) || slices.ContainsFunc([]string{
		"LOADING", "CLUSTERDOWN", "MASTERDOWN", "READONLY", "MOVED", "ASK", "TRYAGAIN", "BUSY", "NOREPLICAS", "MISCONF",
		"ERR max number of clients reached",
	}, func(prefix string) bool { return strings.HasPrefix(reply.Error(), prefix) })
}

// readSettings returns the settings of each server: the fields of INFO, the setting save,
// and the server's address as addr. Some servers omit fields.
func (s *Store) readSettings(ctx context.Context) ([]map[string]string, error) {
	var mu sync.Mutex
	var nodes []map[string]string
	readServer := func(ctx context.Context, server *redis.Client) error {
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
	if ended := s.callWithContext(ctx, func() {
		switch r := s.client.(type) {
		case *redis.Client:
			err = readServer(ctx, r)
		case *redis.ClusterClient:
			err = r.ForEachMaster(ctx, readServer)
		}
	}); ended != nil {
		return nil, ended
	}
	slices.SortFunc(nodes, func(a, b map[string]string) int { return strings.Compare(a["addr"], b["addr"]) })
	return nodes, err
}

// healthFromSettings turns the servers' settings into warnings. It returns ErrEviction if
// a server evicts keys.
func (s *Store) healthFromSettings(nodes []map[string]string) (h store.Health, evictionErr error) {
	var addrs []string
	for _, n := range nodes {
		addr, version, policy := n["addr"], n["redis_version"], n["maxmemory_policy"]
		addrs = append(addrs, strings.TrimSpace(addr+" "+version))
		addWarning := func(format string, args ...any) {
			h.Warnings = append(h.Warnings, addr+": "+fmt.Sprintf(format, args...))
		}
		switch {
		case policy == "":
			addWarning("it is unknown whether the server evicts keys, because it does not answer INFO")
		case policy == "noeviction":
		case strings.HasPrefix(policy, "volatile-"):
			addWarning("maxmemory-policy is %s: the server evicts keys that expire, and tasks do not", policy)
		case n["maxmemory"] != "0":
			evictionErr = fmt.Errorf("%w (%s has %s)", ErrEviction, addr, policy)
		default:
			addWarning("maxmemory-policy is %s: if maxmemory is set, the server will evict tasks", policy)
		}
		switch {
		case version == "" || n["aof_enabled"] == "1":
		case n["save"] != "":
			addWarning("without appendonly, a crash loses the changes since the last snapshot")
		default:
			addWarning("without appendonly and snapshots, a restart loses every task")
		}
	}
	h.Store = fmt.Sprintf("%q in %d shards on %s", s.config.name, len(s.shards), strings.Join(addrs, ", "))
	return h, evictionErr
}
