package redisstore

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Defaults of the options.
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
	name    string
	shards  int // 0: by the kind of client
	log     *slog.Logger
	onLoss  func(error)
	recheck time.Duration
	slack   time.Duration
	care    time.Duration // careInterval, except in tests
	// exact makes Now ask the server each time, for tests that advance the clock.
	exact bool
}

// WithName sets the store's name, with which all its Redis keys begin. Stores with
// different names are independent. The default is [DefaultName]. It panics if the name
// is empty, longer than 64 bytes, or contains a brace, a blank or a control character.
func WithName(name string) Option {
	bad := func(r rune) bool { return r <= ' ' || r == '{' || r == '}' || r == 0x7f }
	if name == "" || len(name) > 64 || strings.ContainsFunc(name, bad) {
		panic(fmt.Sprintf("redisstore: WithName: %q is not a valid store name", name))
	}
	return option(func(c *config) { c.name = name })
}

// WithShards sets the number of shards. It is fixed when the store is first used: a
// Store with another number gets [store.ErrSchema]. The default is [DefaultShards], or
// [DefaultClusterShards] for a Cluster. It panics unless n is a power of two from 1 to
// 1024.
func WithShards(n int) Option {
	if n <= 0 || n > maxShards || n&(n-1) != 0 {
		panic(fmt.Sprintf("redisstore: WithShards: the number of shards must be a power of two up to %d, got %d", maxShards, n))
	}
	return option(func(c *config) { c.shards = n })
}

// WithLogger sets the logger for what no call returns: that a server has lost tasks, or
// what was repaired after a restart. The default is [slog.Default]. It panics if l is
// nil.
func WithLogger(l *slog.Logger) Option {
	if l == nil {
		panic("redisstore: WithLogger: nil Logger")
	}
	return option(func(c *config) { c.log = l })
}

// WithLossHandler sets a function that the Store calls with [ErrLost] when a server has
// lost all tasks of a shard. The Store notices this at its first command to the shard
// after the loss, and also logs it. The command waits for f, so f must not block. The
// Store cannot name the lost tasks; schedule them again if the program knows them. The
// limits and the pause are lost too. It panics if f is nil.
func WithLossHandler(f func(err error)) Option {
	if f == nil {
		panic("redisstore: WithLossHandler: nil function")
	}
	return option(func(c *config) { c.onLoss = f })
}

// WithRecheck sets the longest time after which a worker claims without a wake-up, in
// case a wake-up was lost. The default is [DefaultRecheck]. It panics unless d is from
// 10 ms to an hour.
func WithRecheck(d time.Duration) Option {
	if d < 10*time.Millisecond || d > time.Hour {
		panic(fmt.Sprintf("redisstore: WithRecheck: must be from 10ms to 1h, got %v", d))
	}
	return option(func(c *config) { c.recheck = d })
}

// WithSlack sets how long a worker's round may be delayed, so that it includes reports
// that arrive during the delay. At a steady load this saves the server and the process 60
// to 80 percent of their CPU time. The first round after a pause is not delayed, and
// neither is a large one. Zero turns it off. The default is [DefaultSlack]. It has no
// effect on a Cluster. It panics unless d is from 0 to 100 ms.
func WithSlack(d time.Duration) Option {
	if d < 0 || d > 100*time.Millisecond {
		panic(fmt.Sprintf("redisstore: WithSlack: must be from 0 to 100ms, got %v", d))
	}
	return option(func(c *config) { c.slack = d })
}

func newConfig(client redis.UniversalClient, opts []Option) config {
	c := config{name: DefaultName, log: slog.Default(), recheck: DefaultRecheck, slack: DefaultSlack, care: careInterval}
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

// TuneCluster changes the options of a Redis Cluster client so that the client notices
// a failover within seconds. By default go-redis may take most of a minute. TuneCluster
// returns o, and panics if o is nil.
func TuneCluster(o *redis.ClusterOptions) *redis.ClusterOptions {
	if o == nil {
		panic("redisstore: TuneCluster: nil ClusterOptions")
	}
	o.ClusterStateReloadInterval = time.Second
	return o
}
