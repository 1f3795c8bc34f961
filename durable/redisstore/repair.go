package redisstore

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// Repair looks over a shard: see package store. A task without a place is pending
// afterwards, due when it was to be due; the dead letter of a repeating task is one again.
// Nothing needs it as long as the server keeps what it has acknowledged: it is for what a
// failover, a server that crashed while it wrote its AOF, a disk or a person with redis-cli
// has left. Wait does the same where it sees that tasks and places do not add up.
func (s *Store) Repair(ctx context.Context, shard int) (store.Repair, error) {
	return s.repairShard(ctx, s.shards[shard], 0)
}

const (
	// careInterval is the longest time between two looks of Wait at a shard.
	careInterval = 40 * time.Second
	// careShare is how much longer Wait waits between two steps of a repair than a step
	// took, so that the server has time for others.
	careShare = 9
	// maxStep is how long a step should take at the most.
	maxStep = 5 * time.Millisecond
)

// care is a goroutine of Wait. Now and then it compares the number of a shard's tasks with
// that of their places, and repairs the shard if they differ. It starts again after an error.
func (s *Store) care(ctx context.Context, shards []*shard) {
	interval := s.config.care
	for sleep(ctx, interval/2+rand.N(interval/2)) == nil {
		for _, sh := range shards {
			if n, err := s.astray(ctx, sh); err != nil {
				break
			} else if n == 0 {
				continue
			}
			rep, err := s.repairShard(ctx, sh, careShare)
			if err != nil {
				break
			}
			s.config.log.Warn("redisstore: what a crash of the server had left was put right",
				"shard", sh.index, "requeued", rep.Requeued, "doubled", rep.Doubled, "orphaned", rep.Orphaned)
		}
	}
}

// astray returns how many more tasks a shard has than places that they are in.
func (s *Store) astray(ctx context.Context, sh *shard) (int64, error) {
	v, err := s.run(ctx, call{script: s.scripts.astray, shard: sh})
	if err != nil {
		return 0, err
	}
	n, ok := v.(int64)
	if !ok {
		return 0, unexpected(v)
	}
	return n, nil
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
