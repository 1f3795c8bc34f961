package redisstore

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// Repair corrects a shard after the server has lost acknowledged data, for example in a
// failover: see package store. Usually workers notice the damage, and repair it within a
// minute.
//
// A task that is in no index becomes pending at its due time. A dead letter of a
// repeating task becomes a dead letter again. A damaged counter begins again at 0, and a
// damaged limit is removed; both count as Orphaned.
func (s *Store) Repair(ctx context.Context, shard int) (store.Repair, error) {
	return s.repairShard(ctx, s.shards[shard], 0)
}

const (
	// maxCheckInterval is the longest time between two checks of a shard by checkShards.
	maxCheckInterval = 40 * time.Second
	// After each step checkShards pauses for pauseFactor times the step's duration, so
	// that the server has time for other commands.
	pauseFactor = 9
	// A step should take at most maxStep.
	maxStep = 5 * time.Millisecond
)

// checkShards regularly repairs the shards whose number of tasks differs from their
// number of index entries. It also corrects how many running tasks count towards each
// limit.
func (s *Store) checkShards(ctx context.Context, shards []*shard) {
	interval := s.config.maxCheckInterval
	for sleep(ctx, interval/2+rand.N(interval/2)) == nil {
		for _, sh := range shards {
			n, damaged, err := s.countUnindexed(ctx, sh)
			if len(damaged) > 0 {
				s.config.log.Warn("redisstore: numbers of a shard are damaged and begin again", "shard", sh.index, "numbers", damaged)
			}
			if err == nil && n == 0 {
				// This step corrects damaged numbers, and the number of running tasks of each
				// limit.
				_, err = s.runScript(ctx, s.scripts.repair, sh.index, "run", "", "0", 1)
			}
			if err != nil {
				break
			}
			if n == 0 {
				continue
			}
			rep, err := s.repairShard(ctx, sh, pauseFactor)
			if err != nil {
				break
			}
			s.config.log.Warn("redisstore: repaired a shard after a crash of the server",
				"shard", sh.index, "requeued", rep.Requeued, "doubled", rep.Doubled, "orphaned", rep.Orphaned)
		}
	}
}

// countUnindexed returns how many more tasks than index entries a shard has, and which of
// its numbers are damaged.
func (s *Store) countUnindexed(ctx context.Context, sh *shard) (n int64, damaged []string, err error) {
	v, err := s.runCall(ctx, scriptCall{script: s.scripts.unindexed, shard: sh})
	if err != nil {
		return 0, nil, err
	}
	list, _ := v.([]any)
	if len(list) != 2 {
		return 0, nil, answerError(v)
	}
	n, ok1 := list[0].(int64)
	damaged, ok2 := decodeStrings(list[1])
	if !ok1 || !ok2 {
		return 0, nil, answerError(v)
	}
	return n, damaged, nil
}

// repairShard checks and corrects a shard. After each step it pauses for factor times the
// step's duration.
func (s *Store) repairShard(ctx context.Context, sh *shard, factor int) (store.Repair, error) {
	var total store.Repair
	repairKey := func(name, kind string) (kinds []string, err error) {
		// A step may read large records: halve the number of entries after a slow step.
		for n, cursor := 100, "0"; ; {
			begin := time.Now()
			v, err := s.runScript(ctx, s.scripts.repair, sh.index, name, kind, cursor, n)
			if err != nil {
				return nil, err
			}
			f, _ := v.([]any)
			if len(f) != 6 {
				return nil, answerError(v)
			}
			head, ok1 := decodeStrings(f[:5])
			page, ok2 := decodeStrings(f[5])
			if !ok1 || !ok2 {
				return nil, answerError(v)
			}
			for i, p := range []*int64{&total.Looked, &total.Requeued, &total.Doubled, &total.Orphaned} {
				n, _ := strconv.ParseInt(head[1+i], 10, 64)
				*p += n
			}
			kinds = append(kinds, page...)
			if cursor = head[0]; cursor == "0" {
				return kinds, nil
			}
			stepDuration := time.Since(begin)
			if stepDuration > maxStep {
				n = max(1, n/2)
			}
			if factor > 0 {
				if err := sleep(ctx, time.Duration(factor)*stepDuration); err != nil {
					return nil, err
				}
			}
		}
	}
	var kinds []string
	for _, name := range []string{"kinds", "groupKinds", "allGroups"} {
		found, err := repairKey(name, "")
		if err != nil {
			return total, err
		}
		kinds = append(kinds, found...)
	}
	// Check the tasks last: an entry that is not valid must not count as the index entry
	// of a task.
	for _, kind := range kinds {
		if _, err := repairKey("due", kind); err != nil {
			return total, err
		}
	}
	for _, name := range []string{"lease", "dead", "past", "ended", "run", "err", "follows", "task"} {
		if _, err := repairKey(name, ""); err != nil {
			return total, err
		}
	}
	return total, nil
}
