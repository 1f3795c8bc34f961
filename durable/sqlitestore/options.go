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

// WithClock sets the clock of the Store and its workers, for tests. The default is
// [clock.System]. All Stores on a file must use the same clock. WithClock panics if clk
// is nil.
func WithClock(clk clock.Clock) Option {
	if clk == nil {
		panic("sqlitestore: WithClock: nil Clock")
	}
	return option(func(c *config) { c.clock = clk })
}

// WithLogger sets the logger for errors that no call returns. The default is
// [slog.Default]. It panics if l is nil.
func WithLogger(l *slog.Logger) Option {
	if l == nil {
		panic("sqlitestore: WithLogger: nil Logger")
	}
	return option(func(c *config) { c.log = l })
}

// WithSyncInterval makes the Store sync the disk once in an interval, instead of before
// each acknowledgement (SQLite's synchronous=NORMAL). A power failure then loses what
// was acknowledged since the latest sync: the file is in an earlier, consistent state.
// The end of the process loses nothing. The option applies to this Store only, not to
// other Stores on the file. It panics unless every is from 1 ms to 1 minute.
func WithSyncInterval(every time.Duration) Option {
	if every < time.Millisecond || every > time.Minute {
		panic(fmt.Sprintf("sqlitestore: WithSyncInterval: must be from 1ms to 1m, got %v", every))
	}
	return option(func(c *config) { c.interval = every })
}

// WithOneProcess promises that no other process writes to the file. The Store then does
// not watch for commits of other processes.
func WithOneProcess() Option { return option(func(c *config) { c.alone = true }) }

// WithReadOnly opens the Store for reading only, for tools; others may write at the
// same time. Calls that write return [ErrReadOnly]. SQLite still writes files beside
// the file, unless another process has it open. If the folder is not writable, open a
// copy made by [Store.Backup].
func WithReadOnly() Option { return option(func(c *config) { c.readOnly = true }) }
