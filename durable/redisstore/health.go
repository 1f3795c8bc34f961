package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/tickless/tickless/durable/store"
)

// A node is a server, as far as it told: what it did not tell is empty.
type node struct {
	Addr        string
	RunID       string // of the process
	Version     string
	MaxMemory   int64  // bytes; zero is no limit
	Eviction    string // maxmemory-policy
	AOF         bool
	AppendFsync string
	RDB         bool  // it saves snapshots by itself
	Evicted     int64 // keys that it has thrown away since it was started
	Replicas    int
}

// Check connects, sees that the store was made with these settings, or makes it, and
// looks at how the servers are set up: without persistence, what is scheduled is lost
// when a server restarts, which is a warning; with eviction tasks may vanish at any time,
// which is an error, [ErrEviction]. A Health is returned with that error too.
func (s *Store) Check(ctx context.Context) (store.Health, error) {
	var h store.Health
	if err := s.begin(ctx); err != nil {
		return h, err
	}
	shards := s.shards[:1]
	if _, ok := s.redis.(*redis.Client); ok {
		shards = s.shards
	}
	calls := make([]call, len(shards))
	for i, sh := range shards {
		calls[i] = call{script: s.scripts.now, shard: sh}
	}
	var err error
	for _, cmd := range s.run(ctx, calls...) {
		err = cmp.Or(err, cmd.Err())
	}
	if err != nil {
		return h, s.unfit(err)
	}
	nodes, err := s.inspectAll(ctx)
	if err != nil {
		return h, unfit(err)
	}
	h, err = s.health(nodes)
	for _, sh := range shards {
		if n, _, err := s.numbers(ctx, sh.index); err == nil && n[6] > 0 {
			h.Warnings = append(h.Warnings, fmt.Sprintf("shard %d: %d tasks are in no place; workers repair that within a minute", sh.index, n[6]))
		}
	}
	return h, err
}

// Exists reports whether the store is there, with whatever number of shards. It leaves the
// servers as they are, where all else makes a store that is not there.
func (s *Store) Exists(ctx context.Context) (bool, error) {
	if err := s.begin(ctx); err != nil {
		return false, err
	}
	var there bool
	var err error
	if ended := s.await(ctx, func() {
		// The first shard is made before the others: see know.
		there, err = s.redis.HExists(ctx, s.shards[0].keys[keyMeta], "schema").Result()
	}); ended != nil {
		return false, ended
	}
	if err != nil {
		return false, s.unfit(err)
	}
	return there, nil
}

// unfit is the function of that name, and says so if the client is not for such servers.
func (s *Store) unfit(err error) error {
	if s.misplaced(err) {
		return fmt.Errorf("%w: the server is a node of a Redis Cluster, which needs a redis.ClusterClient: %w", store.ErrUnfit, err)
	}
	return unfit(err)
}

// unfit is explain for errors of Check: those that do not pass by themselves, as when a
// server refuses the password, wrap ErrUnfit.
func unfit(err error) error {
	explained := explain(err)
	if errors.Is(explained, store.ErrUnfit) {
		return explained
	}
	var reply redis.Error
	if !errors.Is(err, redis.ErrClosed) && (!errors.As(err, &reply) || passes(reply)) {
		return explained
	}
	return fmt.Errorf("%w: %w", store.ErrUnfit, explained)
}

// passes reports whether a server that replies so may come to reply otherwise, although
// nobody changes its settings or the client's.
func passes(reply redis.Error) bool {
	return outOfMemory(reply.Error()) || slices.ContainsFunc([]string{
		"LOADING", "CLUSTERDOWN", "MASTERDOWN", "READONLY", "MOVED", "ASK", "TRYAGAIN", "BUSY", "NOREPLICAS", "MISCONF",
		"ERR max number of clients reached",
	}, func(prefix string) bool { return strings.HasPrefix(reply.Error(), prefix) })
}

// misplaced reports whether an error is that of a client for one server which asks a
// node of a cluster for what another one has.
func (s *Store) misplaced(err error) bool {
	var reply redis.Error
	_, one := s.redis.(*redis.Client)
	return one && errors.As(err, &reply) && strings.HasPrefix(reply.Error(), "MOVED ")
}

// inspectAll asks all servers that hold the queue what they are like.
func (s *Store) inspectAll(ctx context.Context) ([]node, error) {
	var mu sync.Mutex
	var nodes []node
	look := func(ctx context.Context, server *redis.Client) error {
		n := inspect(ctx, server)
		mu.Lock()
		defer mu.Unlock()
		nodes = append(nodes, n)
		return nil
	}
	var err error
	if ended := s.await(ctx, func() {
		switch r := s.redis.(type) {
		case *redis.Client:
			err = look(ctx, r)
		case *redis.ClusterClient:
			err = r.ForEachMaster(ctx, look)
		}
	}); ended != nil {
		return nil, ended
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(nodes, func(a, b node) int { return strings.Compare(a.Addr, b.Addr) })
	return nodes, nil
}

// health writes the warnings, and returns the error that there is.
func (s *Store) health(nodes []node) (h store.Health, evicting error) {
	var addrs []string
	warn := func(n node, format string, args ...any) {
		h.Warnings = append(h.Warnings, n.Addr+": "+fmt.Sprintf(format, args...))
	}
	for _, n := range nodes {
		addrs = append(addrs, strings.TrimSpace(n.Addr+" "+n.Version))
		switch {
		case n.Eviction == "":
			warn(n, "it is not known whether the server evicts keys, since it does not answer CONFIG GET or INFO")
		case n.Eviction == "noeviction":
		case n.evicts():
			evicting = fmt.Errorf("%w (%s has %s)", ErrEviction, n.Addr, n.Eviction)
		default:
			warn(n, "maxmemory-policy is %s, which will lose tasks once maxmemory is set", n.Eviction)
		}
		switch {
		case n.Version == "" || n.AOF:
		case n.RDB:
			warn(n, "without appendonly, a crash loses what was scheduled since the last snapshot")
		default:
			warn(n, "without appendonly and snapshots, a restart loses every task")
		}
	}
	h.Store = fmt.Sprintf("%q in %d shards on %s", s.config.name, len(s.shards), strings.Join(addrs, ", "))
	return h, evicting
}

// evicts reports whether the server throws keys away when its memory is full.
func (n *node) evicts() bool {
	return n.MaxMemory > 0 && n.Eviction != "" && n.Eviction != "noeviction"
}

// inspect asks a server what it is like. Many servers that are run by others
// answer only a part.
func inspect(ctx context.Context, server *redis.Client) node {
	n := node{Addr: server.Options().Addr}
	info := make(map[string]string)
	for line := range strings.Lines(server.Info(ctx).Val()) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[k] = v
		}
	}
	n.Version = info["redis_version"]
	n.RunID = info["run_id"]
	n.Eviction = info["maxmemory_policy"]
	n.MaxMemory, _ = strconv.ParseInt(info["maxmemory"], 10, 64)
	n.AOF = info["aof_enabled"] == "1"
	n.Evicted, _ = strconv.ParseInt(info["evicted_keys"], 10, 64)
	n.Replicas, _ = strconv.Atoi(info["connected_slaves"])
	for k, v := range server.ConfigGet(ctx, "*a*").Val() {
		switch k {
		case "save":
			n.RDB = v != ""
		case "maxmemory-policy":
			n.Eviction = v
		case "appendfsync":
			n.AppendFsync = v
		}
	}
	return n
}
