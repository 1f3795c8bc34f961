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
	clock        clock.Clock
	log          *slog.Logger
	syncInterval time.Duration // see WithSyncInterval; 0 syncs every commit
	oneProcess   bool          // no other process writes to the file
	readOnly     bool
	mustExist    bool // see mustExist
}

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

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
	return optionFunc(func(c *config) { c.clock = clk })
}

// WithLogger sets the logger for errors that no call returns. The default is
// [slog.Default]. It panics if l is nil.
func WithLogger(l *slog.Logger) Option {
	if l == nil {
		panic("sqlitestore: WithLogger: nil Logger")
	}
	return optionFunc(func(c *config) { c.log = l })
}

// WithSyncInterval makes the Store sync the disk once in each interval, instead of before
// each acknowledgement. A power failure then loses the changes since the latest sync, but
// the file stays consistent. The end of the process loses nothing.
//
// The option does not affect other Stores on the file. It panics unless every is from 1
// ms to 1 minute.
func WithSyncInterval(every time.Duration) Option {
	if every < time.Millisecond || every > time.Minute {
		panic(fmt.Sprintf("sqlitestore: WithSyncInterval: the interval must be from 1ms to 1m, got %v", every))
	}
	return optionFunc(func(c *config) { c.syncInterval = every })
}

// WithOneProcess tells the Store that no other process writes to the file. The Store then
// does not watch for commits of other processes.
func WithOneProcess() Option { return optionFunc(func(c *config) { c.oneProcess = true }) }

// WithReadOnly opens the Store for reading only. Others may write at the same time. Calls
// that write return [ErrReadOnly].
//
// SQLite usually creates files beside the file. If the folder is not writable, open a
// copy that [Store.Backup] has made.
func WithReadOnly() Option { return optionFunc(func(c *config) { c.readOnly = true }) }

// mustExist refuses a file without a store.
var mustExist = optionFunc(func(c *config) { c.mustExist = true })
