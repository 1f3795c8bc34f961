package redisstore

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// Repair checks and corrects a shard: see package store. A task that is in no index
// becomes pending at its due time, or a dead letter again if it was the dead letter of a
// repeating task. Repair is only needed if the server has lost acknowledged data, for
// example in a failover, a crash during a write to its AOF, by a disk error or by manual
// changes. Wait repairs a shard whose number of tasks differs from the number of index
// entries.
func (s *Store) Repair(ctx context.Context, shard int) (store.Repair, error) {
	return s.repairShard(ctx, s.shards[shard], 0)
}

const (
	// careInterval is the longest time between two checks of a shard by Wait.
	careInterval = 40 * time.Second
	// careShare is how long a repair pauses after each step, as a multiple of the step's
	// duration, so that the server has time for other commands.
	careShare = 9
	// maxStep is the intended maximum duration of a step.
	maxStep = 5 * time.Millisecond
)

// care runs on a goroutine of Wait. From time to time it compares the number of a shard's
// tasks with the number of index entries, and repairs the shard if they differ. It also
// corrects how many tasks of each limit are running. After an error it starts again.
func (s *Store) care(ctx context.Context, shards []*shard) {
	interval := s.config.care
	for sleep(ctx, interval/2+rand.N(interval/2)) == nil {
		for _, sh := range shards {
			n, err := s.astray(ctx, sh)
			if err == nil && n == 0 {
				// The first step of run counts the running tasks of handlers with a limit.
				_, err = s.one(ctx, s.scripts.repair, sh.index, "run", "", "0", 1)
			}
			if err != nil {
				break
			}
			if n == 0 {
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

// astray returns how many more tasks than index entries a shard has.
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

// repairShard checks and corrects a shard. After each step it pauses for a multiple of
// the step's duration.
func (s *Store) repairShard(ctx context.Context, sh *shard, pause int) (store.Repair, error) {
	var total store.Repair
	look := func(name, kind string) (kinds []string, err error) {
		// The records of one step may be large: halve the number after a slow step.
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
	// First remove the entries without a task, so that none of them counts as a task's
	// index entry.
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
