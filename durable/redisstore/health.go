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

// Check connects to the servers. It creates the store if it does not exist, and
// otherwise checks that the store has these settings. It then checks the servers'
// settings: if a server does not persist its data, a restart loses tasks, which is a
// warning. If a server evicts keys, tasks may vanish at any time, which is the error
// [ErrEviction]. Check returns a Health with that error too.
func (s *Store) Check(ctx context.Context) (store.Health, error) {
	var h store.Health
	if err := s.begin(ctx); err != nil {
		return h, err
	}
	shards := s.shards[:1]
	if _, ok := s.redis.(*redis.Client); ok {
		shards = s.shards
	}
	var astray []string
	for _, sh := range shards {
		n, err := s.astray(ctx, sh)
		if err != nil {
			return h, s.unfit(err)
		}
		if n > 0 {
			astray = append(astray, fmt.Sprintf("shard %d: %d tasks are in no place; workers repair that within a minute", sh.index, n))
		}
	}
	nodes, err := s.inspect(ctx)
	if err != nil {
		return h, s.unfit(err)
	}
	h, err = s.health(nodes)
	h.Warnings = append(h.Warnings, astray...)
	return h, err
}

// Exists reports whether the store exists, with any number of shards. It changes
// nothing, while all other methods create the store.
func (s *Store) Exists(ctx context.Context) (bool, error) {
	if err := s.begin(ctx); err != nil {
		return false, err
	}
	var there bool
	var err error
	if ended := s.await(ctx, func() {
		there, err = s.redis.HExists(ctx, s.shards[0].keys[keyMeta], "schema").Result()
	}); ended != nil {
		return false, ended
	}
	if err != nil {
		return false, s.unfit(err)
	}
	return there, nil
}

// unfit is explain for errors of Check: permanent errors, such as a wrong password,
// also wrap ErrUnfit.
func (s *Store) unfit(err error) error {
	explained := explain(err)
	var reply redis.Error
	isReply := errors.As(err, &reply)
	_, one := s.redis.(*redis.Client)
	switch {
	case errors.Is(explained, store.ErrUnfit):
		return explained
	case one && isReply && strings.HasPrefix(reply.Error(), "MOVED "):
		return fmt.Errorf("%w: the server is a node of a Redis Cluster, which needs a redis.ClusterClient: %w", store.ErrUnfit, err)
	case !errors.Is(err, redis.ErrClosed) && (!isReply || passes(reply)):
		return explained
	}
	return fmt.Errorf("%w: %w", store.ErrUnfit, explained)
}

// passes reports whether the error may end by itself, without a change of the server's
// or the client's settings.
func passes(reply redis.Error) bool {
	return outOfMemory(reply.Error()) || slices.ContainsFunc([]string{
		"LOADING", "CLUSTERDOWN", "MASTERDOWN", "READONLY", "MOVED", "ASK", "TRYAGAIN", "BUSY", "NOREPLICAS", "MISCONF",
		"ERR max number of clients reached",
	}, func(prefix string) bool { return strings.HasPrefix(reply.Error(), prefix) })
}

// inspect asks the servers that hold the store for their settings. For each it returns
// the fields of INFO, the setting save, and addr. Many managed servers answer only in
// part.
func (s *Store) inspect(ctx context.Context) ([]map[string]string, error) {
	var mu sync.Mutex
	var nodes []map[string]string
	ask := func(ctx context.Context, server *redis.Client) error {
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
			err = ask(ctx, r)
		case *redis.ClusterClient:
			err = r.ForEachMaster(ctx, ask)
		}
	}); ended != nil {
		return nil, ended
	}
	slices.SortFunc(nodes, func(a, b map[string]string) int { return strings.Compare(a["addr"], b["addr"]) })
	return nodes, err
}

// health returns the warnings, and ErrEviction if a server evicts keys.
func (s *Store) health(nodes []map[string]string) (h store.Health, evicting error) {
	var addrs []string
	for _, n := range nodes {
		addr, version, policy := n["addr"], n["redis_version"], n["maxmemory_policy"]
		addrs = append(addrs, strings.TrimSpace(addr+" "+version))
		warn := func(format string, args ...any) {
			h.Warnings = append(h.Warnings, addr+": "+fmt.Sprintf(format, args...))
		}
		switch {
		case policy == "":
			warn("it is not known whether the server evicts keys, since it does not answer INFO")
		case policy == "noeviction":
		case n["maxmemory"] != "0":
			evicting = fmt.Errorf("%w (%s has %s)", ErrEviction, addr, policy)
		default:
			warn("maxmemory-policy is %s, which will lose tasks once maxmemory is set", policy)
		}
		switch {
		case version == "" || n["aof_enabled"] == "1":
		case n["save"] != "":
			warn("without appendonly, a crash loses what was scheduled since the last snapshot")
		default:
			warn("without appendonly and snapshots, a restart loses every task")
		}
	}
	h.Store = fmt.Sprintf("%q in %d shards on %s", s.config.name, len(s.shards), strings.Join(addrs, ", "))
	return h, evicting
}
