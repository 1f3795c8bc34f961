package redisstore

import (
	"fmt"
	"sync/atomic"
)

// schemaVersion is the version of the stored data. Increment it when the meaning of a
// key or a field changes.
const schemaVersion = 5

// A shard is a part of the tasks. Its Redis keys share a hash tag, so that they are on
// one node of a Cluster and one script may use them all.
type shard struct {
	index int
	// keys are the KEYS of every script, in the order of keyNames.
	keys []string
	args []any // the same, as go-redis takes them

	// schema is the first argument of every script: the Store's schema and, once it is
	// known, the shard's creation time.
	schema atomic.Pointer[string]
	// clock is the latest reading of the server's clock, or nil.
	clock atomic.Pointer[reading]
	// busy says that the latest claim got as many tasks as it could. There is then more
	// work, and rounds do not wait for others.
	busy atomic.Bool
	// combiner sends the commands of Change.
	combiner combiner
}

// The keys of a shard. Times are in microseconds.
//
//	due:KIND ZSET   id to when it is due, of pending tasks of one kind, which is a handler
//	                and a schedule; retries too
//	kinds    ZSET   kind to when its first task is due
//	lease    ZSET   id to when the lease of the running attempt ends
//	dead     ZSET   id to when it became a dead letter
//	task     HASH   id to its record
//	follows  HASH   id to the record of what was scheduled while it runs
//	run      HASH   id to the state of its run, from the first claim on
//	err      HASH   id to its last ten failures
//	wake     ZSET   two members at most, or one for each worker: one worker should check at
//	                once, another a little later
//	meta     HASH   schema and creation time, fence, paused, the owner, counters, and each
//	                sender's last command and its answer
//	past     ZSET   id to until when a finished run, or the head of a key's runs, is kept
//	crew     HASH   worker to its handlers and schedules
//	limits   HASH   handler to its limit over all workers, if it has one
//
// scripts/begin.lua describes the values and how a task moves between the keys. The
// scripts get all these names, and append the kind to the first. No Redis key has the
// first name alone, so a node of a Cluster refuses the scripts while it moves the slot to
// another node: a script that ran meanwhile might see only a part of the shard.
var keyNames = [...]string{"due:", "kinds", "lease", "dead", "task", "follows", "run", "err", "wake", "meta", "crew", "past", "limits"}

const (
	keyWake = 8
	keyMeta = 9
)

// newShards returns the shards. Their tags do not contain their number, so a Store with a
// wrong number finds the schema of the first shard and is refused.
func newShards(name, schema string, n int) []*shard {
	shards := make([]*shard, n)
	for i := range shards {
		tag := fmt.Sprintf("{%s:%d}:", name, i)
		sh := &shard{index: i, keys: make([]string, len(keyNames))}
		for j, k := range keyNames {
			sh.keys[j] = tag + k
			sh.args = append(sh.args, sh.keys[j])
		}
		sh.schema.Store(&schema)
		shards[i] = sh
	}
	return shards
}
