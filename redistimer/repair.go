package redistimer

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// A Repair is what [Client.Repair] has looked at and put right.
type Repair struct {
	Looked   int64 // entries looked at
	Requeued int64 // tasks that were in no place: they are pending now
	Doubled  int64 // tasks that were in two places: they are in one now
	Orphaned int64 // entries without a task: they are gone
}

func (r *Repair) found() bool { return r.Requeued+r.Doubled+r.Orphaned > 0 }

// Repair looks at every task and sees that it is in exactly one place, pending,
// running or dead, and puts right what is not: a task without a place is pending
// then, due when it was to be due. Nothing here needs it as long as the server keeps
// what it has acknowledged: it is for what a failover, a server that crashed while it
// wrote its AOF, a disk or a person with redis-cli has left. Workers do the same by
// themselves when a server was started again, or another one has taken over. It works
// in small steps beside the traffic, and the context ends it. O(n).
func (c *Client) Repair(ctx context.Context) (Repair, error) {
	var total Repair
	for _, sh := range c.shards {
		r, err := c.repairShard(ctx, sh, 0)
		total.Looked += r.Looked
		total.Requeued += r.Requeued
		total.Doubled += r.Doubled
		total.Orphaned += r.Orphaned
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// repairShard looks over a shard, and after each step waits as many times as long as
// the step took as pause says.
func (c *Client) repairShard(ctx context.Context, sh *shard, pause int) (Repair, error) {
	var total Repair
	// Entries without a task first, so that none of them looks like a place.
	for _, kind := range []string{"due", "lease", "dead", "run", "err", "task"} {
		for cursor := "0"; ; {
			begin := time.Now()
			v, err := c.one(ctx, repairScript, sh, kind, cursor, 100)
			if err != nil {
				return total, err
			}
			f, ok := words(v)
			if !ok || len(f) != 5 {
				return total, fmt.Errorf("redistimer: unexpected answer of a script: %v", v)
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
