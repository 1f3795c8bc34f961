package redisstore

import (
	"math/bits"
	"strconv"
	"sync/atomic"
)

// schemaVersion is the version of what is stored in Redis. Whoever changes the
// meaning of a key or of a field raises it.
const schemaVersion = 4

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
	// clock is the latest reading of its server's clock; nil if there is none. The
	// shards of one server share it.
	clock *atomic.Pointer[reading]
	// busy is whether the latest claim has got all that it asked for: there is more to
	// do than fits, and nobody waits for others.
	busy atomic.Bool
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

func newShards(name, schema string, n int, oneClock bool) []*shard {
	clock := new(atomic.Pointer[reading])
	shards := make([]*shard, n)
	for i := range shards {
		tag := "{" + name + ":" + hashTag(name, i) + "}:"
		sh := &shard{index: i, keys: make([]string, len(keyNames))}
		for j, k := range keyNames {
			sh.keys[j] = tag + k
			sh.args = append(sh.args, sh.keys[j])
		}
		sh.schema.Store(&schema)
		if sh.clock = clock; !oneClock {
			sh.clock = new(atomic.Pointer[reading])
		}
		shards[i] = sh
	}
	return shards
}

// hashTag returns the end of the hash tag of shard i, which is chosen so that
// shards spread evenly over the slots of a cluster: shard i's slot is in the
// part of all slots that begins with the bits of i in reverse order, as in the
// sequence of van der Corput. So the first n shards are evenly spread for any n,
// and a shard's tag does not depend on how many there are, which is how a Store
// with another number of them meets the schema and is refused.
func hashTag(name string, i int) string {
	part := int(bits.Reverse16(uint16(i)) >> 6) // of 1024
	for try := 0; ; try++ {
		end := strconv.Itoa(i)
		if try > 0 {
			end += "." + strconv.FormatInt(int64(try), 36)
		}
		if slot(name+":"+end)/(clusterSlots/maxShards) == part {
			return end
		}
	}
}

// clusterSlots is the number of slots of a Redis Cluster.
const clusterSlots = 16384

// slot returns the slot of a hash tag: its CRC16 (XMODEM) modulo slots.
func slot(tag string) int {
	var crc uint16
	for i := range len(tag) {
		crc ^= uint16(tag[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % clusterSlots
}
