package redisstore

import (
	"fmt"
	"sync/atomic"
)

// schemaVersion is the version of what is stored in Redis. Whoever changes the
// meaning of a key or of a field raises it.
const schemaVersion = 5

// A shard is a part of the tasks, with keys of its own that share a hash tag,
// so that they are on one node of a cluster and a script may use them all.
type shard struct {
	index int
	// keys are what every script gets as KEYS, in the order of keyNames.
	keys []string
	args []any // the same, as go-redis takes them

	// schema is what scripts are told first: the Store's schema and, once it is
	// known, when the shard was made.
	schema atomic.Pointer[string]
	// clock is the latest reading of its server's clock; nil if there is none.
	clock atomic.Pointer[reading]
	// busy is whether the latest claim has got all that it asked for: there is more to
	// do than fits, and nobody waits for others.
	busy atomic.Bool
	// combiner is for Change.
	combiner combiner
}

// The keys of a shard. Times are in microseconds.
//
//	due:KIND ZSET   id to when it is due, of tasks of one kind, which is a handler and a
//	                schedule; retries too
//	kinds    ZSET   kind to when its first task is due
//	lease    ZSET   id to when the lease of the running attempt ends
//	dead     ZSET   id to when it became a dead letter
//	task     HASH   id to its record
//	follows  HASH   id to the record of what was scheduled while it runs
//	run      HASH   id to the state of its run, from the first claim on
//	err      HASH   id to its last ten failures
//	wake     ZSET   two members at most, or one for each worker: one should look at once,
//	                another a little later
//	meta     HASH   schema and when the shard was made, fence, paused, who watches,
//	                counters, and each sender's last command and its answer
//	past     ZSET   id to until when a run that has ended is kept, or the head of them
//	crew     HASH   worker to the handlers and schedules that it has
//	limits   HASH   handler to its limit over all workers, if it has one
//
// What they hold, and how a task moves between them, scripts/begin.lua says. The scripts
// are told these names but limits, and put the kind behind the first. Since no key has the first name
// alone, a node of a Cluster refuses the scripts while it moves the slot to another: a script
// that began then could find a part of the shard.
var keyNames = [...]string{"due:", "kinds", "lease", "dead", "task", "follows", "run", "err", "wake", "meta", "crew", "past"}

const (
	keyWake = 8
	keyMeta = 9
)

// newShards returns the shards. Their number is no part of their tags: so a Store with another
// number of them meets the schema of the first one, and is refused.
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
