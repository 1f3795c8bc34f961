package redisstore

import (
	"fmt"
	"sync/atomic"
)

// schemaVersion is the version of the stored data. Increment it when the meaning of a
// key or a field changes.
const schemaVersion = 5

// A shard holds a part of the tasks. Its Redis keys share a hash tag: all are on one node
// of a Cluster, and one script may use them all.
type shard struct {
	index int
	// keys are the KEYS of every script, in the order of keyNames.
	keys    []string
	keyArgs []any // keys, as go-redis takes them

	// schema is the first argument of every script: the Store's schema and, once known,
	// the shard's creation time.
	schema atomic.Pointer[string]
	// clock is the latest reading of the server's clock, or nil.
	clock atomic.Pointer[reading]
	// moreDue is true if the latest claim got as many tasks as it asked for. More tasks may
	// be due then, so rounds are not delayed.
	moreDue atomic.Bool
	// combiner sends the commands of Change.
	combiner combiner
}

// The Redis keys of a shard, with their contents. An id is a task's id. Times are in
// microseconds.
//
//	due:KIND ZSET   id → due time, of pending tasks of one kind. A kind is a handler and a
//	                schedule.
//	kinds    ZSET   kind → due time of its first task
//	lease    ZSET   id → end of the lease, of running tasks
//	dead     ZSET   id → when the task became a dead letter
//	task     HASH   id → record
//	follows  HASH   id → record that was scheduled while the task runs
//	run      HASH   id → state of the run, from the first claim on
//	err      HASH   id → last ten failures
//	wake     ZSET   wake-ups: w wakes one worker, x wakes another worker a little later. y3,
//	                y4 and so on are added to wake all workers.
//	meta     HASH   schema and creation time, fence, paused, owner, counters, and each
//	                sender's last command with its answer
//	past     ZSET   id → expiry, of finished runs that are kept. Each key with such runs
//	                also has an entry here, the head.
//	crew     HASH   worker → its handlers and schedules
//	limits   HASH   handler → its limit over all workers
//
// scripts/begin.lua describes the values, and how a task moves between the keys. Every
// script gets all these names, and appends a kind to "due:".
//
// No Redis key is named "due:" alone. So a node of a Cluster refuses the scripts while it
// moves the shard's slot to another node: a script might find only a part of the shard.
var keyNames = [...]string{"due:", "kinds", "lease", "dead", "task", "follows", "run", "err", "wake", "meta", "crew", "past", "limits"}

const (
	keyWake = 8
	keyMeta = 9
)

// newShards returns the shards. Their hash tags do not contain the number of shards. So a
// Store with a wrong number of shards finds the schema of shard 0, and gets an error.
func newShards(name, schema string, n int) []*shard {
	shards := make([]*shard, n)
	for i := range shards {
		tag := fmt.Sprintf("{%s:%d}:", name, i)
		sh := &shard{index: i, keys: make([]string, len(keyNames))}
		for j, k := range keyNames {
			sh.keys[j] = tag + k
			sh.keyArgs = append(sh.keyArgs, sh.keys[j])
		}
		sh.schema.Store(&schema)
		shards[i] = sh
	}
	return shards
}
