package pgstore

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"regexp"
	"time"
)

// The default values of the options.
const (
	DefaultSchema = "tickless"
	DefaultShards = 1
	DefaultProbe  = 20 * time.Millisecond
)

const maxShards = 64

// An Option changes how [New] makes a Store, and how [Migrate] makes its tables.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

type config struct {
	schema     string
	shardCount int
	pollOnly   bool
	notifyTx   bool
	probe      time.Duration
	log        *slog.Logger
	steady     func() time.Duration // a clock of this process that is never set
	steadyName string               // names the clock, if its times can be compared with those of other Stores
}

var schemaNames = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,50}$`)

// WithSchema sets the name of the schema that has the Store's tables. Stores in different
// schemas are independent. The default is [DefaultSchema].
//
// WithSchema panics unless the name has 1 to 51 lower-case letters, digits and underscores
// and does not begin with a digit.
func WithSchema(name string) Option {
	if !schemaNames.MatchString(name) {
		panic(fmt.Sprintf("pgstore: WithSchema: the name must have 1 to 51 lower-case letters, digits and underscores and not begin with a digit, got %q", name))
	}
	return optionFunc(func(c *config) { c.schema = name })
}

// WithShards sets the number of shards, a power of two from 1 to 64. The default is
// [DefaultShards]. The commands of a shard are carried out one group after the other, so
// more shards use more processors of the server.
//
// The first [Migrate] fixes the number. A Store with another number gets [store.ErrSchema],
// except from [Store.ScheduleTx], which cannot check it: its tasks may never run, and
// [Store.Check] warns. With more than one shard, limits over all workers are refused, because
// a limit counts the tasks of one shard. WithShards panics for any other n.
func WithShards(n int) Option {
	if n <= 0 || n > maxShards || n&(n-1) != 0 {
		panic(fmt.Sprintf("pgstore: WithShards: the number of shards must be a power of two from 1 to %d, got %d", maxShards, n))
	}
	return optionFunc(func(c *config) { c.shardCount = n })
}

// WithPollOnly makes the Store do without LISTEN and NOTIFY. It is for PgBouncer in
// transaction mode, where LISTEN does not work. Workers then notice tasks of other
// processes when they probe: see [WithProbe].
func WithPollOnly() Option { return optionFunc(func(c *config) { c.pollOnly = true }) }

// WithTxNotify makes [Store.ScheduleTx] also notify the workers when the transaction
// commits. Workers then probe once a second at most. PostgreSQL takes a lock in each
// commit with a NOTIFY, so a server commits only some hundred of these transactions a
// second.
func WithTxNotify() Option { return optionFunc(func(c *config) { c.notifyTx = true }) }

// WithProbe sets how often a process with workers looks for tasks that [Store.ScheduleTx]
// has scheduled, and for lost wake-ups. The default is [DefaultProbe]. A probe is one small
// query. WithProbe panics unless d is from 1 ms to 1 minute.
func WithProbe(d time.Duration) Option {
	if d < time.Millisecond || d > time.Minute {
		panic(fmt.Sprintf("pgstore: WithProbe: the time must be from 1ms to 1m, got %v", d))
	}
	return optionFunc(func(c *config) { c.probe = d })
}

// WithLogger sets the logger for errors that no call returns. The default is
// [slog.Default]. It panics if l is nil.
func WithLogger(l *slog.Logger) Option {
	if l == nil {
		panic("pgstore: WithLogger: nil Logger")
	}
	return optionFunc(func(c *config) { c.log = l })
}

func newConfig(function string, opts []Option) config {
	begin := time.Now()
	c := config{schema: DefaultSchema, shardCount: DefaultShards, probe: DefaultProbe, log: slog.Default(), steadyName: rand.Text(),
		steady: func() time.Duration { return time.Since(begin) }}
	for i, o := range opts {
		if o == nil {
			panic(fmt.Sprintf("pgstore: %s: option %d is nil", function, i+1))
		}
		o.apply(&c)
	}
	return c
}
