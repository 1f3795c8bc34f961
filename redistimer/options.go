package redistimer

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Defaults of the options of a [Client].
const (
	DefaultName          = "tickless"
	DefaultShards        = 2
	DefaultClusterShards = 64
)

// maxShards is as many as the hash tags are chosen for.
const maxShards = 1024

// An Option changes how [New] makes a Client.
type Option interface{ apply(*config) }

type config struct {
	name   string
	shards int // 0: by the kind of client
	log    *slog.Logger
	onLoss func(error)
}

type option func(*config)

func (f option) apply(c *config) { f(c) }

// WithName sets the queue's name, with which all its keys in Redis begin.
// Queues of different names have nothing in common. The default is
// [DefaultName]. It panics if the name is empty, longer than 64 bytes, or
// contains a brace, a blank or a control character.
func WithName(name string) Option {
	bad := func(r rune) bool { return r <= ' ' || r == '{' || r == '}' || r == 0x7f }
	if name == "" || len(name) > 64 || strings.ContainsFunc(name, bad) {
		panic(fmt.Sprintf("redistimer: WithName: %q is no name of a queue", name))
	}
	return option(func(c *config) { c.name = name })
}

// WithShards sets the number of shards that the queue's tasks are spread over.
// It is fixed when the queue is first used, and whoever comes with another
// number later gets [ErrSchema]. The default is [DefaultShards], and
// [DefaultClusterShards] for a cluster. It panics unless n is a power of two
// from 1 to 1024.
func WithShards(n int) Option {
	if n <= 0 || n > maxShards || n&(n-1) != 0 {
		panic(fmt.Sprintf("redistimer: WithShards: the number of shards must be a power of two up to %d, it is %d", maxShards, n))
	}
	return option(func(c *config) { c.shards = n })
}

// WithLogger sets where the Client and its Workers report what nobody else is
// told: connections that fail, leases that were lost, tasks that became dead
// letters. The default is [slog.Default]. It panics if l is nil.
func WithLogger(l *slog.Logger) Option {
	if l == nil {
		panic("redistimer: WithLogger with a nil Logger")
	}
	return option(func(c *config) { c.log = l })
}

// WithLossHandler has the Client call f when it notices that a server has lost tasks,
// with [ErrLost], or may throw them away, with [ErrEviction]: when it first uses the
// queue, with the first command after the loss to each shard, and once a minute while
// it is used. What it calls f for is logged too. F must not block: the call that has
// noticed waits for it. What was lost cannot be named; who can schedules it again.
// It panics if f is nil.
func WithLossHandler(f func(err error)) Option {
	if f == nil {
		panic("redistimer: WithLossHandler with a nil function")
	}
	return option(func(c *config) { c.onLoss = f })
}

func newConfig(client redis.UniversalClient, opts []Option) config {
	c := config{name: DefaultName, log: slog.Default()}
	for i, o := range opts {
		notNil("New", i, o)
		o.apply(&c)
	}
	if c.shards == 0 {
		c.shards = DefaultShards
		if _, ok := client.(*redis.ClusterClient); ok {
			c.shards = DefaultClusterShards
		}
	}
	return c
}

// TuneCluster changes options for a client of Redis Cluster so that a failover
// is noticed within seconds: without it go-redis may take most of a minute. It
// returns o, and panics if it is nil.
func TuneCluster(o *redis.ClusterOptions) *redis.ClusterOptions {
	if o == nil {
		panic("redistimer: TuneCluster with nil ClusterOptions")
	}
	o.ClusterStateReloadInterval = time.Second
	return o
}

// notNil panics if an option of the function is nil.
func notNil(function string, i int, option any) {
	if option == nil {
		panic(fmt.Sprintf("redistimer: %s: option %d is nil", function, i+1))
	}
}

// A ScheduleOption changes what [Client.Schedule] does. OnlyNew, OnlyEarlier and
// OnlyLater exclude one another: a call with two of them fails with [ErrInvalid].
// A nil option panics.
type ScheduleOption interface{ applySchedule(*scheduleConfig) }

type scheduleConfig struct {
	mode     string
	clash    bool // two modes were asked for
	replicas int
	wait     time.Duration
}

type scheduleOption func(*scheduleConfig)

func (f scheduleOption) applySchedule(c *scheduleConfig) { f(c) }

// Modes of the schedule script: which of two tasks with one key stays.
const (
	modeUpsert  = "u"
	modeNew     = "n"
	modeEarlier = "e"
	modeLater   = "l"
)

// OnlyNew leaves a task that the key has already, pending, running or dead, as
// it is: the outcome is then Kept.
func OnlyNew() ScheduleOption { return onlyMode(modeNew) }

// OnlyEarlier leaves a pending task as it is, unless the new one is due before
// it: then the outcome is Kept. It is for tasks that are to run by a time at the
// latest.
func OnlyEarlier() ScheduleOption { return onlyMode(modeEarlier) }

// OnlyLater leaves a pending task as it is, unless the new one is due after it:
// then the outcome is Kept. It is for timeouts that are only ever put off.
func OnlyLater() ScheduleOption { return onlyMode(modeLater) }

func onlyMode(m string) ScheduleOption {
	return scheduleOption(func(c *scheduleConfig) {
		c.clash = c.clash || c.mode != modeUpsert && c.mode != m
		c.mode = m
	})
}

// Replicated has Schedule wait, for d at most, until so many replicas of the
// server have confirmed the task, with the command WAIT. If fewer do the error
// is [ErrNotReplicated]. It panics unless both are positive.
func Replicated(replicas int, d time.Duration) ScheduleOption {
	if replicas <= 0 || d <= 0 {
		panic("redistimer: Replicated: the number of replicas and the time must be positive")
	}
	return scheduleOption(func(c *scheduleConfig) { c.replicas, c.wait = replicas, d })
}
