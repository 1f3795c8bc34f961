package redistimer

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// A Client schedules tasks and looks after them. Make one with [New]. It may be
// used by any number of goroutines; every method that takes a context does one
// or a few round trips to Redis, retries what go-redis retries, and is O(log n)
// in the number of tasks unless it says otherwise.
type Client struct {
	redis  redis.UniversalClient
	config config
	schema string
	// known is whether shard 0 has told that the schema is this one: see run. begun
	// is what the clock was then.
	known  atomic.Bool
	begun  atomic.Pointer[reading]
	shards []*shard
	lanes  lanes
	// waiting has an element for each goroutine of await.
	waiting chan struct{}
	// watched is when the servers were looked at last, in nanoseconds, and evicted
	// how many keys each had thrown away by then.
	watched atomic.Int64
	evicted sync.Map
	// combiners are for Schedule: shard i uses the one that i modulo their number
	// says.
	combiners []*combiner
}

// An Item is a task and when it is due, for [Client.ScheduleBatch].
type Item struct {
	Task Task
	When When
}

// New returns a Client for a queue on one Redis server, on those that Sentinels
// watch over, or on a Redis Cluster; client stays the caller's to close. New
// does not connect: [Client.Check] does. It panics if client is nil, as a pointer in
// the interface too, or a [redis.Ring], which has no scripts that survive a change
// of its servers, and if an option is nil.
func New(client redis.UniversalClient, opts ...Option) *Client {
	if isNil(client) {
		panic("redistimer: New with a nil client")
	}
	if _, ok := client.(*redis.Ring); ok {
		panic("redistimer: New: a redis.Ring cannot be used, a redis.ClusterClient can")
	}
	c := &Client{redis: client, config: newConfig(client, opts)}
	c.schema = fmt.Sprintf("%d/%d", schemaVersion, c.config.shards)
	_, oneServer := client.(*redis.Client)
	c.shards = newShards(c.config.name, c.schema, c.config.shards, oneServer)
	c.lanes.client = strconv.FormatUint(rand.Uint64(), 36)
	c.waiting = make(chan struct{}, maxWaiting)
	n := len(c.shards)
	if oneServer {
		n = 1
	}
	c.combiners = make([]*combiner, n)
	for i := range c.combiners {
		c.combiners[i] = &combiner{c: c}
	}
	return c
}

// isNil reports whether there is no client, or a pointer to none.
func isNil(client redis.UniversalClient) bool {
	v := reflect.ValueOf(client)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
