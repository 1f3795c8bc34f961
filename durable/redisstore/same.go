package redisstore

import (
	"context"

	"github.com/redis/go-redis/v9"

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
	if o.database() != s.database() {
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

// database returns the number of the database on a server; a Cluster has one.
func (s *Store) database() int {
	if r, ok := s.redis.(*redis.Client); ok {
		return r.Options().DB
	}
	return 0
}
