package redisstore

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tickless/tickless/durable/store"
)

// A Store keeps tasks in Redis. Make one with [New].
type Store struct {
	redis  redis.UniversalClient
	config config
	schema string
	shards []*shard
	// scripts are allScripts, except in tests.
	scripts *scripts
	// known says that shard 0 has confirmed the schema: see run.
	known atomic.Bool
	// waiting has an element for each goroutine of await.
	waiting chan struct{}
	// latest is when the latest round was sent, in nanoseconds since opened: see company.
	latest atomic.Int64
	opened time.Time

	closing sync.Once
	closed  chan struct{}
}

var _ store.Store = (*Store)(nil)

// New returns a Store on one Redis server, on servers monitored by Sentinels, or on a
// Redis Cluster. The caller closes the client. New does not connect; [Store.Check]
// does. The client must be a *[redis.Client] or a *[redis.ClusterClient], because the
// Store opens its own connections to the client's servers. To observe the client's
// commands, add a hook to it. New panics for any other client, and if the client or an
// option is nil.
func New(client redis.UniversalClient, opts ...Option) *Store {
	if v := reflect.ValueOf(client); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		panic("redisstore: New: nil client")
	}
	switch client.(type) {
	case *redis.Client, *redis.ClusterClient:
	default:
		panic(fmt.Sprintf("redisstore: New: the client must be a *redis.Client or a *redis.ClusterClient, got %T", client))
	}
	s := &Store{
		redis:   client,
		config:  newConfig(client, opts),
		scripts: allScripts,
		waiting: make(chan struct{}, maxWaiting),
		closed:  make(chan struct{}),
		opened:  time.Now(),
	}
	s.schema = fmt.Sprintf("%d/%d", schemaVersion, s.config.shards)
	s.shards = newShards(s.config.name, s.schema, s.config.shards)
	for _, sh := range s.shards {
		sh.combiner.s = s
	}
	return s
}

// Close closes the Store: every later call returns [store.ErrClosed], and Wait returns.
// Commands under way continue. The caller closes the client.
func (s *Store) Close() error {
	s.closing.Do(func() { close(s.closed) })
	return nil
}

// begin returns an error if a call must not start.
func (s *Store) begin(ctx context.Context) error {
	select {
	case <-s.closed:
		return store.ErrClosed
	default:
		return store.Ended(ctx)
	}
}

// Shards returns the number of shards.
func (s *Store) Shards() int { return len(s.shards) }

// Now returns the time of the shard's server, estimated from an answer that is at most
// a few seconds old. If there is no such answer, it asks the server.
func (s *Store) Now(ctx context.Context, shard int) (store.Time, error) {
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	sh := s.shards[shard]
	if r := sh.clock.Load(); s.config.exact || r == nil || time.Since(r.after) > maxAge {
		if err := s.know(ctx); err != nil {
			return 0, explain(err)
		}
		now, err := s.check(ctx, sh)
		return now, explain(err)
	} else {
		return r.at(time.Now()), nil
	}
}

// check asks a shard for its clock, and so verifies its schema.
func (s *Store) check(ctx context.Context, sh *shard) (store.Time, error) {
	v, err := s.send(ctx, call{script: s.scripts.now, shard: sh})
	if err != nil {
		return 0, err
	}
	text, _ := v.(string)
	now, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, unexpected(v)
	}
	sh.read(store.Time(now))
	return store.Time(now), nil
}
