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
	look := func(name, kind string) (kinds []string, err error) {
		// Records of one step may be large: it halves what takes long.
		for n, cursor := 100, "0"; ; {
			begin := time.Now()
			v, err := s.one(ctx, s.scripts.repair, sh.index, name, kind, cursor, n)
			if err != nil {
				return nil, err
			}
			f, _ := v.([]any)
			if len(f) != 6 {
				return nil, unexpected(v)
			}
			head, ok1 := words(f[:5])
			some, ok2 := words(f[5])
			if !ok1 || !ok2 {
				return nil, unexpected(v)
			}
			for i, p := range []*int64{&total.Looked, &total.Requeued, &total.Doubled, &total.Orphaned} {
				n, _ := strconv.ParseInt(head[1+i], 10, 64)
				*p += n
			}
			kinds = append(kinds, some...)
			if cursor = head[0]; cursor == "0" {
				return kinds, nil
			}
			took := time.Since(begin)
			if took > maxStep {
				n = max(1, n/2)
			}
			if pause > 0 {
				if err := sleep(ctx, time.Duration(pause)*took); err != nil {
					return nil, err
				}
			}
		}
	}
	kinds, err := look("kinds", "")
	if err != nil {
		return total, err
	}
	// Entries without a task first, so that none of them looks like a place.
	for _, kind := range kinds {
		if _, err := look("due", kind); err != nil {
			return total, err
		}
	}
	for _, name := range []string{"lease", "dead", "past", "run", "err", "follows", "task"} {
		if _, err := look(name, ""); err != nil {
			return total, err
		}
	}
	return total, nil
}

// maxStep is how long a step should take at the most.
const maxStep = 5 * time.Millisecond
