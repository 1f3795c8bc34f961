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
	client redis.UniversalClient
	config config
	schema string // version and number of shards
	shards []*shard
	// scripts are allScripts, except in tests.
	scripts *scripts
	// schemaChecked is true once shard 0 has confirmed the schema: see runCall.
	schemaChecked atomic.Bool
	// callSlots has one element for each goroutine of callWithContext.
	callSlots chan struct{}
	eviction  evictionCheck
	// latestRoundNanos is when the latest round was sent, in nanoseconds since openedAt:
	// see delayRound.
	latestRoundNanos atomic.Int64
	latestNames      atomic.Pointer[nameList] // of the latest claim; nil: none
	openedAt         time.Time

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
//
// The first command to a shard upgrades data of the previous version of this package.
// Programs with the previous version then get [store.ErrSchema], and change nothing.
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
		client:    client,
		config:    newConfig(client, opts),
		scripts:   allScripts,
		callSlots: make(chan struct{}, maxConcurrentCalls),
		eviction:  evictionCheck{reading: make(chan struct{}, 1)},
		closed:    make(chan struct{}),
		openedAt:  time.Now(),
	}
	s.schema = fmt.Sprintf("%d/%d", schemaVersion, s.config.shardCount)
	s.shards = newShards(s.config.name, s.schema, s.config.shardCount)
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
	if r := sh.lastReading.Load(); s.config.nowAsksServer || r == nil || time.Since(r.localTime) > maxReadingAge {
		if err := s.checkSchema(ctx); err != nil {
			return 0, toStoreError(err)
		}
		now, err := s.readServerClock(ctx, sh)
		return now, toStoreError(err)
	} else {
		return r.serverTimeAt(time.Now()), nil
	}
}

// readServerClock asks a shard's server for the time. The script also checks the schema.
func (s *Store) readServerClock(ctx context.Context, sh *shard) (store.Time, error) {
	v, err := s.sendCall(ctx, scriptCall{script: s.scripts.now, shard: sh})
	if err != nil {
		return 0, err
	}
	text, _ := v.(string)
	now, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, answerError(v)
	}
	sh.saveReading(store.Time(now))
	return store.Time(now), nil
}
