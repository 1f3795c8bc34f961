package diskstore

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tickless/tickless/clock"
)

// DefaultShards is the number of shards without [WithShards].
const DefaultShards = 4

// MaxClockStep is how far the wall clock may be set before a Store says so: see the
// package comment.
const MaxClockStep = time.Minute

// An Option changes how [Open] opens a Store.
type Option interface{ apply(*config) }

type config struct {
	shards int // 0: those that there are, or DefaultShards
	every  time.Duration
	log    *slog.Logger
	clock  clock.Clock

	// These are for tests.

	fs       vfs.FS
	window   int // tasks in memory in a shard
	batch    int // keys that are read ahead at a time
	memTable int
	logAge   time.Duration
	pause    time.Duration // of the gate
	patience time.Duration // with a disk that does not answer, when the store has failed
	still    bool          // no compactions
	raise    int           // keys that are deleted until a head is raised
	filter   int           // bytes of the filters of keys
	vain     int           // lookups in vain for which a filter is made again
}

type option func(*config)

func (f option) apply(c *config) { f(c) }

func newConfig(opts []Option) config {
	c := config{log: slog.Default(), clock: clock.System(), fs: vfs.Default, window: windowSize, batch: pageSize, memTable: memTableSize, filter: presenceBytes, vain: leastVain, logAge: logAge, raise: raiseEvery, pause: gatePause, patience: closeTimeout}
	for i, o := range opts {
		if o == nil {
			panic(fmt.Sprintf("diskstore: Open: option %d is nil", i+1))
		}
		o.apply(&c)
	}
	return c
}

// WithShards sets the number of shards of a new store. The default is [DefaultShards].
// A directory keeps the number it was made with: Open returns an error that wraps
// [store.ErrSchema] if it is another one. More shards let more processors work, up to
// as many as there are. WithShards panics unless n is a power of two from 1 to 1024.
func WithShards(n int) Option {
	if n <= 0 || n > 1024 || n&(n-1) != 0 {
		panic(fmt.Sprintf("diskstore: WithShards: the number of shards must be a power of two up to 1024, got %d", n))
	}
	return option(func(c *config) { c.shards = n })
}

// WithSync has the Store sync the disk once in a while, rather than before it
// acknowledges a command: a sync begins at the latest that time after the first
// acknowledgement that needs one, or when the sync before it ends if that is later. What
// was acknowledged within that time, and the time that a sync takes, before a crash of the
// process or a power cut may be lost; or within the time of two syncs, if one takes longer
// than every. What is lost is the latest: the store is then as it was at some moment
// within that time. The default is to sync before each acknowledgement, one sync for all
// that wait for one. WithSync panics unless every is from a millisecond to a minute.
func WithSync(every time.Duration) Option {
	if every < time.Millisecond || every > time.Minute {
		panic(fmt.Sprintf("diskstore: WithSync: must be from 1ms to 1m, got %v", every))
	}
	return option(func(c *config) { c.every = every })
}

// WithLogger sets where the Store reports what nobody else is told: that the disk has
// failed or is full, and that the clock was set. The default is [slog.Default]. It
// panics if l is nil.
func WithLogger(l *slog.Logger) Option {
	if l == nil {
		panic("diskstore: WithLogger with a nil Logger")
	}
	return option(func(c *config) { c.log = l })
}

// WithClock has the Store, and the workers on it, follow a clock, for tests. The default
// is [clock.System]. A Store works from 1970 to the day before the last of 2199: at other
// times Open, commands and workers return an error that wraps [store.ErrUnfit]. It panics if
// clk is nil.
func WithClock(clk clock.Clock) Option {
	if clk == nil {
		panic("diskstore: WithClock with a nil Clock")
	}
	return option(func(c *config) { c.clock = clk })
}
