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

// A wake-up is two members in a shard's wake set. The worker that pops the first checks
// the shard at once. The one that pops wakeBackup does so a little later, in case the
// other is frozen or gone: see rouse in scripts/lib.lua.
const wakeBackup = "x"

// A waiter is a call of Wait. It waits for wake-ups, which scripts send when a task
// becomes due before the owner's timer. The waiter pops their members with BZPOPMIN, on
// connections of its own, so as not to occupy the caller's pool.
//
// A wake-up may be lost with the worker that popped it or with a reply. Then the waiter
// that popped the backup checks the store, and all waiters do so from time to time: see
// next.
type waiter struct {
	s      *Store
	client redis.UniversalClient
	ctx    context.Context
	all    sync.WaitGroup

	mu   sync.Mutex
	wake func(shard int)

	// later says for each shard of the Store whether a call of callLater is scheduled.
	later []atomic.Bool
}

func newWaiter(ctx context.Context, shards int, wake func(shard int)) *waiter {
	return &waiter{ctx: ctx, wake: wake, later: make([]atomic.Bool, shards)}
}

// Wait waits for wake-ups until the context ends. It survives failed connections. While
// it waits, it repairs a shard whose number of tasks differs from the number of index
// entries: see care.
func (s *Store) Wait(ctx context.Context, shards []int, wake func(shard int)) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	inner, cancel := context.WithCancel(ctx)
	w := newWaiter(inner, len(s.shards), wake)
	w.s = s
	defer w.all.Wait()
	defer cancel()
	w.client = s.another(len(shards))
	defer w.client.Close()
	list := make([]*shard, len(shards))
	for i, n := range shards {
		list[i] = s.shards[n]
		w.all.Go(func() { w.hear(list[i]) })
	}
	w.all.Go(func() { s.care(inner, list) })
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closed:
		return store.ErrClosed
	}
}

// another returns a client like the caller's with connections for some blocking commands.
func (s *Store) another(blocking int) redis.UniversalClient {
	switch r := s.redis.(type) {
	case *redis.ClusterClient:
		opt := *r.Options()
		opt.PoolSize, opt.MinIdleConns, opt.MaxIdleConns, opt.MaxActiveConns = blocking+1, 0, 0, 0
		return redis.NewClusterClient(TuneCluster(&opt))
	default:
		opt := *r.(*redis.Client).Options()
		opt.PoolSize, opt.MinIdleConns, opt.MaxIdleConns, opt.MaxActiveConns = blocking+1, 0, 0, 0
		opt.MaxRetries = -1
		return redis.NewClient(&opt)
	}
}

// call calls wake, unless the waiter has ended. While wake runs, no more members are
// popped.
func (w *waiter) call(shard int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wakeLocked(shard)
}

func (w *waiter) wakeLocked(shard int) {
	if w.ctx.Err() == nil {
		w.wake(shard)
	}
}

// hear waits for wake-ups of a shard.
func (w *waiter) hear(sh *shard) {
	// Whole seconds, because servers before Redis 6 require that.
	timeout := max(w.s.config.recheck.Truncate(time.Second), time.Second)
	pause := firstBackoff
	for w.ctx.Err() == nil {
		z, err := w.client.BZPopMin(w.ctx, timeout, sh.keys[keyWake]).Result()
		switch {
		case err == nil && z.Member == wakeBackup:
			w.callLater(sh.index)
		case err == nil:
			w.call(sh.index)
		case !errors.Is(err, redis.Nil):
			w.s.noticeFailure(w.ctx, err)
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

// callLater calls wake a little later, in case no other worker claims. It does nothing
// if such a call is already scheduled, because that call covers this one too.
func (w *waiter) callLater(shard int) {
	if w.later[shard].Swap(true) {
		return
	}
	w.all.Go(func() {
		if sleep(w.ctx, backup+rand.N(backup)) != nil {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		// A member popped from now on needs another call.
		w.later[shard].Store(false)
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
