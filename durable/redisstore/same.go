package redisstore

import (
	"context"

	"github.com/tickless/tickless/durable/store"
)

// Same reports whether other is known to be this store: a Store of the same name on the
// same server and database, whatever their clients are. It asks the servers what process
// they are. If one of them does not say so, only Stores with one client are known to be the
// same.
func (s *Store) Same(ctx context.Context, other store.Store) bool {
	o, ok := other.(*Store)
	if !ok || o.config.name != s.config.name {
		return false
	}
	if o.redis == s.redis {
		return true
	}
	if a, b := s.database(ctx), o.database(ctx); a != b || a < 0 {
		return false
	}
	mine, err := s.inspectAll(ctx)
	if err != nil {
		return false
	}
	theirs, err := o.inspectAll(ctx)
	if err != nil {
		return false
	}
	ids := make(map[string]bool)
	for _, n := range mine {
		ids[n.RunID] = n.RunID != ""
	}
	for _, n := range theirs {
		if ids[n.RunID] {
			return true
		}
	}
	return false
}

// database returns the number of the database on a server, or -1 if the server does not say
// it: a client may select one that its options do not have. A Cluster has one.
func (s *Store) database(ctx context.Context) int {
	info, err := s.redis.ClientInfo(ctx).Result()
	if err != nil {
		return -1
	}
	return info.DB
}
