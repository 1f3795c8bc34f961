package redisstore

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// A server that was started again may have lost a part of what it had written, or
// have carried out a part of a script: see scripts/begin.lua. Another one that has
// taken a shard over may know less. So a worker that waits for wake-ups asks the servers now
// and then, and whenever a connection has failed, who they are, and repairs the shards of one
// that is not who it was. The shard remembers by which run of its server that was done, so
// that one worker does it, or a few at most. It also repairs a shard where the number of tasks
// is not that of their places.

const (
	// careInterval is the time after which Wait asks by itself, and careFirst, or
	// up to twice that, when it asks first.
	careInterval = 45 * time.Second
	careFirst    = 10 * time.Second
	// careShare is how much longer Wait waits between two steps than a step took,
	// so that the server has time for others.
	careShare = 9
)

// doubt has those that wait ask who the servers are.
func (s *Store) doubt() {
	select {
	case s.doubts <- struct{}{}:
	default:
	}
}

// care is a goroutine of Wait.
func (s *Store) care(ctx context.Context, shards []*shard) {
	done := make([]string, len(shards)) // by which run each was looked over
	for pause := careFirst + rand.N(careFirst); ; pause = careInterval {
		select {
		case <-ctx.Done():
			return
		case <-s.doubts:
			// Not all at once, and when the connections have settled.
			if sleep(ctx, 100*time.Millisecond+rand.N(time.Second)) != nil {
				return
			}
		case <-time.After(pause):
		}
		if err := s.lookOver(ctx, shards, done); err != nil && ctx.Err() == nil {
			s.doubt()
		}
	}
}

// lookOver repairs the shards that need it.
func (s *Store) lookOver(ctx context.Context, shards []*shard, done []string) error {
	runs := make(map[*redis.Client]string)
	for i, sh := range shards {
		node, err := s.master(ctx, sh)
		if err != nil {
			return err
		}
		id, asked := runs[node]
		if !asked {
			if id, err = s.runOf(ctx, node); err != nil {
				return err
			}
			runs[node] = id
		}
		n, _, err := s.numbers(ctx, sh.index)
		if err != nil {
			return err
		}
		again := id != "" && id != done[i] // it may not say
		if again {
			v, err := s.one(ctx, s.scripts.checked, sh.index, id, 0)
			if err != nil {
				return err
			}
			again = v != int64(1)
		}
		if n[6] != 0 || again {
			rep, err := s.repairShard(ctx, sh, careShare)
			if err != nil {
				return err
			}
			if rep.Requeued+rep.Doubled+rep.Orphaned > 0 {
				s.config.log.Warn("redisstore: what a restart of the server, or a crash, had left was put right",
					"shard", sh.index, "requeued", rep.Requeued, "doubled", rep.Doubled, "orphaned", rep.Orphaned)
			}
		}
		if again {
			if _, err := s.one(ctx, s.scripts.checked, sh.index, id, 1); err != nil {
				return err
			}
		}
		done[i] = id
	}
	return nil
}

// runOf returns the id of a server's run, which is another one after each start; it
// is empty if the server does not tell.
func (s *Store) runOf(ctx context.Context, node *redis.Client) (string, error) {
	var text string
	var err error
	if ended := s.await(ctx, func() { text, err = node.Info(ctx, "server").Result() }); ended != nil {
		return "", ended
	}
	if err != nil {
		if _, reply := err.(redis.Error); reply {
			return "", nil
		}
		return "", err
	}
	for line := range strings.Lines(text) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "run_id:"); ok {
			return id, nil
		}
	}
	return "", nil
}

// master returns a client for the server that has the shard.
func (s *Store) master(ctx context.Context, sh *shard) (*redis.Client, error) {
	if r, ok := s.redis.(*redis.ClusterClient); ok {
		return r.MasterForKey(ctx, sh.keys[0])
	}
	return s.redis.(*redis.Client), nil
}
