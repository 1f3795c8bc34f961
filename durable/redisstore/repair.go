package redisstore

import (
	"context"
	"strconv"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// Repair looks over a shard: see package store. A task without a place is pending
// afterwards, due when it was to be due, but the dead letter of a repeating task, which is
// one again. Nothing needs it as long as the server keeps
// what it has acknowledged: it is for what a failover, a server that crashed while it
// wrote its AOF, a disk or a person with redis-cli has left. Wait does the same by
// itself.
func (s *Store) Repair(ctx context.Context, shard int) (store.Repair, error) {
	return s.repairShard(ctx, s.shards[shard], 0)
}

// repairShard looks over a shard, and after each step waits as many times as long as
// the step took as pause says.
func (s *Store) repairShard(ctx context.Context, sh *shard, pause int) (store.Repair, error) {
	var total store.Repair
	// Entries without a task first, so that none of them looks like a place.
	for _, kind := range []string{"due", "aside", "lease", "dead", "run", "err", "task", "kinds"} {
		for cursor := "0"; ; {
			begin := time.Now()
			v, err := s.one(ctx, s.scripts.repair, sh.index, kind, cursor, 100)
			if err != nil {
				return total, err
			}
			f, ok := words(v)
			if !ok || len(f) != 5 {
				return total, unexpected(v)
			}
			for i, p := range []*int64{&total.Looked, &total.Requeued, &total.Doubled, &total.Orphaned} {
				n, _ := strconv.ParseInt(f[1+i], 10, 64)
				*p += n
			}
			if cursor = f[0]; cursor == "0" {
				break
			}
			if pause > 0 {
				if err := sleep(ctx, time.Duration(pause)*time.Since(begin)); err != nil {
					return total, err
				}
			}
		}
	}
	return total, nil
}
