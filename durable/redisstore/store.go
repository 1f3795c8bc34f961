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
	// scripts are those of allScripts but in tests.
	scripts *scripts
	// known is whether shard 0 has told that the schema is this one: see run.
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

// New returns a Store on one Redis server, on those that Sentinels watch over, or on a
// Redis Cluster; client stays the caller's to close. New does not connect:
// [Store.Check] does. It panics unless client is a *[redis.Client] or a
// *[redis.ClusterClient], which the Store asks for their servers and for connections of its
// own, and if that or an option is nil. What is to see a client's commands is a hook of it.
func New(client redis.UniversalClient, opts ...Option) *Store {
	if v := reflect.ValueOf(client); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		panic("redisstore: New with a nil client")
	}
	switch client.(type) {
	case *redis.Client, *redis.ClusterClient:
	default:
		panic(fmt.Sprintf("redisstore: New needs a *redis.Client or a *redis.ClusterClient, not %T", client))
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

// Close ends the Store: every call returns [store.ErrClosed] from now on, and Wait
// returns. What is under way goes on. The client is the caller's to close.
func (s *Store) Close() error {
	s.closing.Do(func() { close(s.closed) })
	return nil
}

// begin returns an error if a call may not begin.
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

// Now returns the time of the server that has the shard, as far as the latest answers
// say, which are at most a few seconds old; without one it asks.
func (s *Store) Now(ctx context.Context, shard int) (store.Time, error) {
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	sh := s.shards[shard]
	if r := sh.clock.Load(); s.config.exact || r == nil || time.Since(r.after) > fresh {
		if err := s.know(ctx); err != nil {
			return 0, explain(err)
		}
		now, err := s.check(ctx, sh)
		return now, explain(err)
	} else {
		return r.at(time.Now()), nil
	}
}

// check asks a shard for its clock, and so for its schema.
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
