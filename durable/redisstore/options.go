package redisstore

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// The default values of the options.
const (
	DefaultName          = "tickless"
	DefaultShards        = 1
	DefaultClusterShards = 64
	DefaultRecheck       = 5 * time.Second
	DefaultSlack         = 4 * time.Millisecond
)

const maxShards = 1024

// An Option changes how [New] makes a Store.
type Option interface{ apply(*config) }

type option func(*config)

func (f option) apply(c *config) { f(c) }

type config struct {
	name          string
	shards        int // 0 means the default for the kind of client
	log           *slog.Logger
	onLoss        func(error)
	recheck       time.Duration
	slack         time.Duration
	checkInterval time.Duration // checkInterval, except in tests
	// exactNow makes Now ask the server every time. Tests that advance the clock need
	// this.
	exactNow bool
}

// WithName sets the store's name. All its Redis keys begin with a brace and this name.
// Stores with different names are independent. The default is [DefaultName]. WithName
// panics if the name is empty, is longer than 64 bytes, or contains a brace, a space or a
// control character.
func WithName(name string) Option {
	isInvalid := func(r rune) bool { return r <= ' ' || r == '{' || r == '}' || r == 0x7f }
	if name == "" || len(name) > 64 || strings.ContainsFunc(name, isInvalid) {
		panic(fmt.Sprintf("redisstore: WithName: the name must have 1 to 64 bytes without braces, spaces and control characters, got %q", name))
	}
	return option(func(c *config) { c.name = name })
}

// WithShards sets the number of shards, a power of two from 1 to 1024. The first use of
// the store fixes the number; a Store with another number then gets [store.ErrSchema].
// The default is [DefaultShards], or [DefaultClusterShards] for a Cluster. WithShards
// panics for any other n.
func WithShards(n int) Option {
	if n <= 0 || n > maxShards || n&(n-1) != 0 {
		panic(fmt.Sprintf("redisstore: WithShards: the number of shards must be a power of two from 1 to %d, got %d", maxShards, n))
	}
	return option(func(c *config) { c.shards = n })
}

// WithLogger sets the logger for events that no call reports: a server has lost tasks, or
// a worker has repaired a shard. The default is [slog.Default]. It panics if l is nil.
func WithLogger(l *slog.Logger) Option {
	if l == nil {
		panic("redisstore: WithLogger: nil Logger")
	}
	return option(func(c *config) { c.log = l })
}

// WithLossHandler sets a function that the Store calls with [ErrLost] when a server has
// lost all tasks of a shard. The limits and the pause are lost too. The Store notices the
// loss at its next command to the shard, and also logs it. The command waits for f, so f
// must not block.
//
// The Store does not know the lost tasks. A program that knows them can schedule them
// again. WithLossHandler panics if f is nil.
func WithLossHandler(f func(err error)) Option {
	if f == nil {
		panic("redisstore: WithLossHandler: nil function")
	}
	return option(func(c *config) { c.onLoss = f })
}

// WithRecheck sets the longest time between two claims of a worker. It limits how late a
// task is if a wake-up is lost. The default is [DefaultRecheck]. WithRecheck panics unless
// d is from 10 ms to an hour.
func WithRecheck(d time.Duration) Option {
	if d < 10*time.Millisecond || d > time.Hour {
		panic(fmt.Sprintf("redisstore: WithRecheck: the time must be from 10ms to 1h, got %v", d))
	}
	return option(func(c *config) { c.recheck = d })
}

// WithSlack sets the longest delay of a round, the command in which a worker reports and
// claims tasks. Reports that arrive during the delay join the round. At a steady load this
// saves 60 to 80 percent of the CPU time of the server and the process. Large rounds and
// the first round after a pause are not delayed.
//
// Zero turns the delay off. The default is [DefaultSlack]. WithSlack has no effect on a
// Cluster. It panics unless d is from 0 to 100 ms.
func WithSlack(d time.Duration) Option {
	if d < 0 || d > 100*time.Millisecond {
		panic(fmt.Sprintf("redisstore: WithSlack: the delay must be from 0 to 100ms, got %v", d))
	}
	return option(func(c *config) { c.slack = d })
}

func newConfig(client redis.UniversalClient, opts []Option) config {
	c := config{name: DefaultName, log: slog.Default(), recheck: DefaultRecheck, slack: DefaultSlack, checkInterval: checkInterval}
	for i, o := range opts {
		if o == nil {
			panic(fmt.Sprintf("redisstore: New: option %d is nil", i+1))
		}
		o.apply(&c)
	}
	_, cluster := client.(*redis.ClusterClient)
	if c.shards == 0 {
		c.shards = DefaultShards
		if cluster {
			c.shards = DefaultClusterShards
		}
	}
	if cluster {
		c.slack = 0
	}
	return c
}

// TuneCluster changes the options of a Redis Cluster client so that the client notices a
// failover within seconds. With its default options go-redis may need most of a minute.
// TuneCluster returns o, and panics if o is nil.
func TuneCluster(o *redis.ClusterOptions) *redis.ClusterOptions {
	if o == nil {
		panic("redisstore: TuneCluster: nil ClusterOptions")
	}
	o.ClusterStateReloadInterval = time.Second
	return o
}
