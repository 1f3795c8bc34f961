package sqlitestore

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/tickless/tickless/clock"
)

// An Option changes how [Open] opens a Store.
type Option interface{ apply(*config) }

type config struct {
	clock    clock.Clock
	log      *slog.Logger
	interval time.Duration
	alone    bool
	readOnly bool
}

type option func(*config)

func (f option) apply(c *config) { f(c) }

func newConfig(opts []Option) config {
	c := config{clock: clock.System(), log: slog.Default()}
	for i, o := range opts {
		if o == nil {
			panic(fmt.Sprintf("sqlitestore: Open: option %d is nil", i+1))
		}
		o.apply(&c)
	}
	return c
}

// WithClock has the Store, and the workers on it, follow a clock, for tests. The default is
// [clock.System]. All who have a file open must follow the same one. WithClock panics if
// clk is nil.
func WithClock(clk clock.Clock) Option {
	if clk == nil {
		panic("sqlitestore: WithClock with a nil Clock")
	}
	return option(func(c *config) { c.clock = clk })
}

// WithLogger sets where the Store reports what nobody else is told. The default is
// [slog.Default]. It panics if l is nil.
func WithLogger(l *slog.Logger) Option {
	if l == nil {
		panic("sqlitestore: WithLogger with a nil Logger")
	}
	return option(func(c *config) { c.log = l })
}

// WithSyncInterval has the Store sync the disk once in an interval, rather than before it
// acknowledges a command (SQLite's synchronous=NORMAL). What was acknowledged since the
// latest sync is lost in a power cut, though not if just the process ends: the file is then
// as it was at some moment before. Other Stores on the file keep what they
// were opened with. It panics unless every is from 1 ms to 1 minute.
func WithSyncInterval(every time.Duration) Option {
	if every < time.Millisecond || every > time.Minute {
		panic(fmt.Sprintf("sqlitestore: WithSyncInterval: must be from 1ms to 1m, got %v", every))
	}
	return option(func(c *config) { c.interval = every })
}

// WithOneProcess promises that no other process writes to the file. The Store does not look
// for what others have committed then.
func WithOneProcess() Option { return option(func(c *config) { c.alone = true }) }

// WithReadOnly has the Store read only, beside others that write, for tools: what would
// write returns [ErrReadOnly]. SQLite writes beside the file even so, unless another has it
// open: in a folder that cannot be written, open a copy that [Store.Backup] has made.
func WithReadOnly() Option { return option(func(c *config) { c.readOnly = true }) }
