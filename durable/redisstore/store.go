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
	schema string // version and number of shards
	shards []*shard
	// scripts are allScripts, except in tests.
	scripts *scripts
	// schemaChecked is true once shard 0 has confirmed the schema: see run.
	schemaChecked atomic.Bool
	// awaiting has one element for each goroutine of await.
	awaiting chan struct{}
	// latestRound is when the latest round was sent, in nanoseconds since opened: see
	// delayRound.
	latestRound atomic.Int64
	opened      time.Time

	closeOnce sync.Once
	closed    chan struct{}
}

var _ store.Store = (*Store)(nil)

// New returns a Store on one Redis server, on servers monitored by Sentinels, or on a
// Redis Cluster. New does not connect; [Store.Check] does. The caller closes the client.
//
// The client must be a *[redis.Client] or a *[redis.ClusterClient], because the Store
// opens more connections with its options. New panics for any other client, a nil client
// and a nil option. To observe the commands, add a hook to the client.
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
		redis:    client,
		config:   newConfig(client, opts),
		scripts:  allScripts,
		awaiting: make(chan struct{}, maxWaiting),
		closed:   make(chan struct{}),
		opened:   time.Now(),
	}
	s.schema = fmt.Sprintf("%d/%d", schemaVersion, s.config.shards)
	s.shards = newShards(s.config.name, s.schema, s.config.shards)
	for _, sh := range s.shards {
		sh.combiner.store = s
	}
	return s
}

// Close closes the Store: later calls return [store.ErrClosed], and Wait returns.
// Commands under way continue. The caller closes the client.
func (s *Store) Close() error {
	s.closeOnce.Do(func() { close(s.closed) })
	return nil
}

// checkOpen returns an error if the Store is closed or the context has ended.
func (s *Store) checkOpen(ctx context.Context) error {
	select {
	case <-s.closed:
		return store.ErrClosed
	default:
		return store.Ended(ctx)
	}
}

// Shards returns the number of shards.
func (s *Store) Shards() int { return len(s.shards) }

// Now returns the time of the shard's server. It calculates the time from an answer of
// the last few seconds, or asks the server.
func (s *Store) Now(ctx context.Context, shard int) (store.Time, error) {
	if err := s.checkOpen(ctx); err != nil {
		return 0, err
	}
	sh := s.shards[shard]
	if r := sh.clock.Load(); s.config.exactNow || r == nil || time.Since(r.localTime) > maxAge {
		if err := s.checkSchema(ctx); err != nil {
			return 0, explain(err)
		}
		now, err := s.askClock(ctx, sh)
		return now, explain(err)
	} else {
		return r.serverTimeAt(time.Now()), nil
	}
}

// askClock asks a shard's server for the time. The script also checks the schema.
func (s *Store) askClock(ctx context.Context, sh *shard) (store.Time, error) {
	v, err := s.send(ctx, call{script: s.scripts.now, shard: sh})
	if err != nil {
		return 0, err
	}
	text, _ := v.(string)
	now, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, badAnswer(v)
	}
	sh.addReading(store.Time(now))
	return store.Time(now), nil
}
