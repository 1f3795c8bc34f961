package redisstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tickless/tickless/durable/store"
)

// A wake-up consists of two members of the ZSET wake, for two workers. The worker that
// pops wakeBackup checks the shard a little later, in case the other worker is frozen or
// gone.
const wakeBackup = "x"

// A waiter is a call of Wait. It pops wake-ups with BZPOPMIN, on its own connections, so
// that the caller's pool stays free.
type waiter struct {
	store      *Store
	client     redis.UniversalClient
	ctx        context.Context
	goroutines sync.WaitGroup

	mu   sync.Mutex
	wake func(shard int)

	// delayed says for each shard whether callLater has scheduled a call of wake.
	delayed []atomic.Bool
}

func newWaiter(ctx context.Context, shards int, wake func(shard int)) *waiter {
	return &waiter{ctx: ctx, wake: wake, delayed: make([]atomic.Bool, shards)}
}

// Wait pops wake-ups and calls wake for them until the context ends. It survives failed
// connections. Meanwhile it repairs damaged shards: see checkShards.
func (s *Store) Wait(ctx context.Context, shards []int, wake func(shard int)) error {
	if err := s.checkOpen(ctx); err != nil {
		return err
	}
	inner, cancel := context.WithCancel(ctx)
	w := newWaiter(inner, len(s.shards), wake)
	w.store = s
	defer w.goroutines.Wait()
	defer cancel()
	w.client = s.blockingClient(len(shards))
	defer w.client.Close()
	watched := make([]*shard, len(shards))
	for i, n := range shards {
		watched[i] = s.shards[n]
		w.goroutines.Go(func() { w.popWakeUps(watched[i]) })
	}
	w.goroutines.Go(func() { s.checkShards(inner, watched) })
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closed:
		return store.ErrClosed
	}
}

// blockingClient returns a client with the caller's options. blocking is how many
// blocking commands it sends at the same time.
func (s *Store) blockingClient(blocking int) redis.UniversalClient {
	switch r := s.redis.(type) {
	case *redis.ClusterClient:
		options := *r.Options()
		options.PoolSize, options.MinIdleConns, options.MaxIdleConns, options.MaxActiveConns = blocking+1, 0, 0, 0
		return redis.NewClusterClient(TuneCluster(&options))
	default:
		options := *r.(*redis.Client).Options()
		options.PoolSize, options.MinIdleConns, options.MaxIdleConns, options.MaxActiveConns = blocking+1, 0, 0, 0
		options.MaxRetries = -1
		return redis.NewClient(&options)
	}
}

// callWake calls wake unless the waiter has ended. Calls of wake never overlap.
func (w *waiter) callWake(shard int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wakeLocked(shard)
}

func (w *waiter) wakeLocked(shard int) {
	if w.ctx.Err() == nil {
		w.wake(shard)
	}
}

// popWakeUps pops the wake-ups of one shard until the waiter ends.
func (w *waiter) popWakeUps(sh *shard) {
	// Servers before Redis 6 only accept whole seconds.
	timeout := max(w.store.config.recheck.Truncate(time.Second), time.Second)
	pause := firstBackoff
	for w.ctx.Err() == nil {
		z, err := w.client.BZPopMin(w.ctx, timeout, sh.keys[keyWake]).Result()
		switch {
		case err == nil && z.Member == wakeBackup:
			w.callLater(sh.index)
		case err == nil:
			w.callWake(sh.index)
		case !errors.Is(err, redis.Nil):
			w.store.noticeFailure(w.ctx, err)
			if c, ok := w.client.(*redis.ClusterClient); ok {
				c.ReloadState(w.ctx)
			}
			if sleep(w.ctx, pause) != nil {
				return
			}
			pause = min(2*pause, lastBackoff)
			continue
		}
		pause = firstBackoff
	}
}

// firstBackoff and lastBackoff are the shortest and the longest pause after a failed
// command.
const (
	firstBackoff = 20 * time.Millisecond
	lastBackoff  = time.Second
)

// callLater calls wake a little later, in case no other worker checks the shard. If such
// a call is already scheduled, it does nothing.
func (w *waiter) callLater(shard int) {
	if w.delayed[shard].Swap(true) {
		return
	}
	w.goroutines.Go(func() {
		if sleep(w.ctx, backupDelay+rand.N(backupDelay)) != nil {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		// A wake-up that comes from now on needs another call.
		w.delayed[shard].Store(false)
		w.wakeLocked(shard)
	})
}

// sleep waits for d, or returns the context's error.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
