package redistimer

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// wakeBackup is the member of wake whose taker looks a little later, in case the
// taker of the other is frozen or gone: see rouse in scripts/begin.lua.
const wakeBackup = "x"

// ears wait for wake-ups: for members that the scripts put into a shard's wake
// when a task is due before the one that somebody watches for. They have
// connections of their own, which spend their life in BZPOPMIN, and would
// otherwise be missing in the caller's pool.
//
// A wake-up may get lost with the worker that took it, or with a reply. Then
// another one, who took the backup, looks by itself, and all do after the safety
// interval: see scripts/claim.lua.
type ears struct {
	w      *Worker
	slots  *slots
	client redis.UniversalClient
	own    bool // close it
	cancel context.CancelFunc
	ctx    context.Context
	all    sync.WaitGroup
}

func (w *Worker) listen(s *slots) *ears {
	e := &ears{w: w, slots: s, client: w.client.redis}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	switch r := w.client.redis.(type) {
	case *redis.Client:
		// One connection for all shards.
		opt := *r.Options()
		opt.PoolSize, opt.MinIdleConns, opt.MaxIdleConns, opt.MaxActiveConns = len(w.loops)+1, 0, 0, 0
		opt.MaxRetries = -1
		e.client, e.own = redis.NewClient(&opt), true
		e.hear(w.loops)
	case *redis.ClusterClient:
		opt := *r.Options()
		opt.PoolSize, opt.MinIdleConns, opt.MaxIdleConns, opt.MaxActiveConns = len(w.loops)+1, 0, 0, 0
		TuneCluster(&opt)
		e.client, e.own = redis.NewClusterClient(&opt), true
		e.hearEach(w.loops)
	default:
		e.hearEach(w.loops)
	}
	return e
}

// hear listens for some loops in one command, as one server can.
func (e *ears) hear(loops []*loop) {
	keys := make([]string, len(loops))
	byKey := make(map[string]*loop, len(loops))
	for i, l := range loops {
		keys[i] = l.sh.keys[keyWake]
		byKey[keys[i]] = l
	}
	// Whole seconds, for servers older than 6.
	timeout := max(e.w.config.safety.Truncate(time.Second), time.Second)
	e.all.Go(func() {
		pause := firstBackoff
		// A worker that has no room leaves wake-ups to others.
		for e.slots.await() {
			z, err := e.client.BZPopMin(e.ctx, timeout, keys...).Result()
			switch {
			case err == nil:
				e.w.n.wakeups.Add(1)
				if l := byKey[z.Key]; z.Member == wakeBackup {
					l.claimLater()
				} else {
					l.claimSoon()
				}
				pause = firstBackoff
				continue
			case errors.Is(err, redis.Nil):
				pause = firstBackoff
				continue
			case e.ctx.Err() != nil:
				return
			case len(loops) > 1 && strings.HasPrefix(err.Error(), "CROSSSLOT"):
				// A proxy before a cluster.
				e.hearEach(loops)
				return
			}
			e.w.client.noticeFailure(e.ctx, err)
			if c, ok := e.client.(*redis.ClusterClient); ok {
				c.ReloadState(e.ctx)
			}
			e.w.complain(e.w.client.explain(err))
			e.w.doubt()
			select {
			case <-e.ctx.Done():
				return
			case <-time.After(pause):
				pause = min(2*pause, lastBackoff)
			}
		}
	})
}

func (e *ears) hearEach(loops []*loop) {
	for _, l := range loops {
		e.hear([]*loop{l})
	}
}

// close ends the listening. With a client of its own it does so at once, else
// when the commands under way have timed out.
func (e *ears) close() {
	e.cancel()
	if e.own {
		_ = e.client.Close()
	}
	e.all.Wait()
}
