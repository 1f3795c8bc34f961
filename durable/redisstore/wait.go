package redisstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tickless/tickless/durable/store"
)

// A wake-up adds two members to the ZSET wake, for two workers. The worker that pops
// freshWakeMember checks the shard at once. The worker that pops backupWakeMember checks it
// a little later, in case the other worker is frozen or gone. A member that begins with
// passedWakeMember is a wake-up that other workers could not use; their number follows.
// Further members are for all workers.
const (
	freshWakeMember  = "w"
	backupWakeMember = "x"
	passedWakeMember = "p"
)

// passAfter is how long a call of wake may take before the wake-up goes on to another
// worker. A worker without a free place blocks in wake. So it pops nothing more until it
// has one, and a wake-up comes to each full worker at most once. If all are full, the
// wake-up stays in the ZSET until one of them has a place.
const passAfter = 2 * time.Millisecond

// A waiter is a call of Wait. It pops wake-ups with BZPOPMIN, on its own connections, so
// that the caller's pool stays free.
type waiter struct {
	store      *Store
	client     redis.UniversalClient
	ctx        context.Context
	goroutines sync.WaitGroup

	mu   sync.Mutex
	wake func(shard int)

	// hasDelayedWake is true for the shards for which callWakeLater will call wake.
	hasDelayedWake []atomic.Bool
}

func newWaiter(ctx context.Context, shards int, wake func(shard int)) *waiter {
	return &waiter{ctx: ctx, wake: wake, hasDelayedWake: make([]atomic.Bool, shards)}
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
	w.client = s.newBlockingClient(len(shards))
	defer w.client.Close()
	watchedShards := make([]*shard, len(shards))
	for i, n := range shards {
		watchedShards[i] = s.shards[n]
		w.goroutines.Go(func() { w.popWakeUps(watchedShards[i]) })
	}
	w.goroutines.Go(func() { s.checkShards(inner, watchedShards) })
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closed:
		return store.ErrClosed
	}
}

// newBlockingClient returns a client with the caller's options. blocking is how many
// blocking commands it sends at the same time.
func (s *Store) newBlockingClient(blocking int) redis.UniversalClient {
	switch r := s.client.(type) {
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

// callWake calls wake for a popped member of the ZSET wake.
func (w *waiter) callWake(sh *shard, member string) {
	passes, isPassed := 0, strings.HasPrefix(member, passedWakeMember)
	if isPassed {
		passes, _ = strconv.Atoi(member[len(passedWakeMember):])
	}
	if isPassed || member == freshWakeMember {
		defer time.AfterFunc(passAfter, func() { w.passOn(sh, member) }).Stop()
		// If the next claim finds a task for which the worker has no room, it passes the
		// wake-up on too: see passCount.
		sh.passes.Store(int32(passes) + 1)
	}
	w.wakeShard(sh.index, func() {})
}

// passOn gives a wake-up to another worker. If that fails, the backup still comes.
func (w *waiter) passOn(sh *shard, member string) {
	_ = w.client.ZAdd(w.ctx, sh.keys[keyWake], redis.Z{Member: member}).Err()
}

// wakeShard calls before, and then wake unless the waiter has ended. Calls never overlap.
func (w *waiter) wakeShard(shard int, before func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before()
	if w.ctx.Err() == nil {
		w.wake(shard)
	}
}

// popWakeUps pops the wake-ups of one shard until the waiter ends.
func (w *waiter) popWakeUps(sh *shard) {
	// Servers before Redis 6 only accept whole seconds.
	popTimeout := max(w.store.config.recheckInterval.Truncate(time.Second), time.Second)
	backoff := firstBackoff
	for w.ctx.Err() == nil {
		z, err := w.client.BZPopMin(w.ctx, popTimeout, sh.keys[keyWake]).Result()
		switch {
		case err == nil && z.Member == backupWakeMember:
			w.callWakeLater(sh)
		case err == nil:
			member, _ := z.Member.(string)
			w.callWake(sh, member)
		case !errors.Is(err, redis.Nil):
			w.store.handleFailedConn(w.ctx, err)
			if c, ok := w.client.(*redis.ClusterClient); ok {
				c.ReloadState(w.ctx)
			}
			if sleep(w.ctx, backoff) != nil {
				return
			}
			backoff = min(2*backoff, lastBackoff)
			continue
		}
		backoff = firstBackoff
	}
}

// firstBackoff and lastBackoff are the shortest and the longest pause after a failed
// command.
const (
	firstBackoff = 20 * time.Millisecond
	lastBackoff  = time.Second
)

// callWakeLater calls wake a little later, in case no other worker checks the shard. At
// most one such call is scheduled for each shard.
func (w *waiter) callWakeLater(sh *shard) {
	if w.hasDelayedWake[sh.index].Swap(true) {
		return
	}
	w.goroutines.Go(func() {
		if sleep(w.ctx, backupDelay+rand.N(backupDelay)) != nil {
			return
		}
		defer time.AfterFunc(passAfter, func() { w.passOn(sh, freshWakeMember) }).Stop()
		w.wakeShard(sh.index, func() {
			w.hasDelayedWake[sh.index].Store(false) // a wake-up that comes from now on needs another call
		})
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
