package redisstore

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// schemaVersion is the version of the stored data. Increment it when the meaning of a
// key or a field changes, and teach scripts/upgrade.lua to change the data of the version
// before.
const schemaVersion = 6

// A shard has a part of the tasks. Its Redis keys share a hash tag, so that one script
// can use them all, even on a Cluster.
type shard struct {
	index int
	// keys are the KEYS of every script, in the order of keyNames.
	keys    []string
	keyArgs []any // keys, as go-redis takes them

	// schema is the first argument of every script: the Store's schema and, once known,
	// the shard's creation time.
	schema atomic.Pointer[string]
	// lastReading is the latest reading of the server's clock, or nil.
	lastReading atomic.Pointer[clockReading]
	// mayHaveMoreDue is true if the latest claim got its maximum number of tasks. The next
	// round is then not delayed.
	mayHaveMoreDue atomic.Bool
	// passes is 0, or how many workers have passed on the wake-up that was popped last if
	// this one does too.
	passes atomic.Int32
	// upgrading is held while the Store upgrades the shard.
	upgrading sync.Mutex
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
//	wake     ZSET   wake-ups: see wakeWorkers in scripts/lib.lua
//	meta     HASH   schema and creation time, fence, paused, owner, counters, each
//	                sender's last command with its answer, and each set's version and keys
//	past     ZSET   id → expiry, of finished runs that are kept: see scripts/kept.lua
//	ended    ZSET   id → when the run ended, of the same runs without heads
//	crew     HASH   worker → the longest time between its rounds, its number, and the id of its
//	                list of names
//	names:ID HASH   a worker's handlers and schedules, each with a letter → its number
//	aside    ZSET   kind → due time of its first task, of kinds that are not in kinds: see
//	                scripts/round.lua. aside:ID has those of a list of names, and aside:=HANDLER
//	                those that wait for a handler's limit, or until it is not paused.
//	limits   HASH   handler → its limit over all workers
//	stopped  HASH   handler → since when it is paused, a space and the note. Names of handlers
//	                are here and in limits after their length and a colon.
//
//	groups:  the kinds with a group, as scripts/begin.lua says: groups:kinds as kinds, and
//	                groups:aside as aside; groups:blocked has the kinds whose group is at its
//	                limit, groups:all those of due:@, groups:state, a HASH, group → running
//	                tasks and when its rate allows a full burst, and groups:idle the same times
//	                for groups that run nothing
//
// scripts/begin.lua describes the values, and how a task moves between the keys. Every
// script gets all these names, and appends a kind to "due:".
//
// No Redis key is named "due:" alone. This makes a node of a Cluster refuse the scripts
// while it moves the shard to another node.
var keyNames = [...]string{"due:", "kinds", "lease", "dead", "task", "follows", "run", "err", "wake", "meta", "crew", "past", "limits", "ended", "aside", "names:", "stopped", "groups:"}

const (
	keyWake = 8
	keyMeta = 9
)

// newShards returns n shards. Their hash tags do not contain n, so that a Store with a
// wrong n finds the schema of shard 0.
func newShards(name, schema string, n int) []*shard {
	shards := make([]*shard, n)
	for i := range shards {
		hashTag := fmt.Sprintf("{%s:%d}:", name, i)
		sh := &shard{index: i, keys: make([]string, len(keyNames))}
		for j, k := range keyNames {
			sh.keys[j] = hashTag + k
			sh.keyArgs = append(sh.keyArgs, sh.keys[j])
		}
		sh.schema.Store(&schema)
		shards[i] = sh
	}
	return shards
}
