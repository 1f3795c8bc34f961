package timer

import (
	"fmt"
	"runtime"
	"time"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/executor"
)

// DefaultTick is the tick of a Scheduler without [WithTick].
const DefaultTick = 100 * time.Microsecond

// slotsPerLevel is the number of slots in each level of the wheels. Tests use fewer.
const slotsPerLevel = 256

// An Option configures a Scheduler made by [New]. A function that returns an Option
// panics if its argument is not allowed.
type Option interface{ apply(*config) }

type config struct {
	tick          time.Duration
	slotsPerLevel int
	numShards     int // 0: defaultNumShards
	executor      executor.Executor
	maxPending    int // 0: no limit
	onPanic       func(v any, stack []byte)
	clock         clock.Clock // nil: the system's
	slack         slack
	name          string
}

// slack says how late timers may fire: shareOfDelay × delay, but at least minSlack and at
// most maxSlack.
type slack struct {
	shareOfDelay       float64
	minSlack, maxSlack time.Duration // if maxSlack is 0, there is no slack
}

// forDelay returns the slack of a timer with delay d.
func (s *slack) forDelay(d time.Duration) time.Duration {
	if s.maxSlack == 0 {
		return 0
	}
	return min(max(time.Duration(s.shareOfDelay*float64(d)), s.minSlack), s.maxSlack)
}

type option func(*config)

func (f option) apply(c *config) { f(c) }

// WithTick sets the length of a tick, to which deadlines are rounded up. A longer tick
// causes fewer wake-ups. The default is [DefaultTick]. The tick must be positive.
func WithTick(tick time.Duration) Option {
	if tick <= 0 {
		panic(fmt.Sprintf("timer: WithTick: the tick must be positive, got %v", tick))
	}
	return option(func(c *config) { c.tick = tick })
}

// WithSlack lets timers fire later than their deadlines, so that several timers fire in
// one wake-up. That saves CPU. A timer's slack is share × its delay, but at least
// minSlack and at most maxSlack. The timer is due at its deadline, or up to its slack
// later. The default is no slack.
//
// For example, a request's timeout of 30 s may be 300 ms late:
//
//	timer.New(timer.WithSlack(0.01, time.Millisecond, time.Second))
//
// With the default tick, timers with a slack of 10 ms share moments that are 9.6 ms
// apart. A late tick of a ticker does not delay its next tick. [Scheduler.StartWithin]
// and [Handle.MoveWithin] set the slack of one timer.
//
// WithSlack panics unless share is from 0 to 1, and 0 <= minSlack <= maxSlack.
func WithSlack(share float64, minSlack, maxSlack time.Duration) Option {
	if !(share >= 0 && share <= 1) || minSlack < 0 || maxSlack < minSlack {
		panic(fmt.Sprintf("timer: WithSlack: the share must be from 0 to 1, and 0 <= minSlack <= maxSlack, got %v, %v and %v",
			share, minSlack, maxSlack))
	}
	return option(func(c *config) { c.slack = slack{share, minSlack, maxSlack} })
}

// WithShards sets the number of shards. A shard is a part of the Scheduler's timers with
// a lock of its own. With more shards, fewer goroutines wait for a lock.
//
// The default is 8 × GOMAXPROCS, but at most 64, or 2 × GOMAXPROCS if that is more. With
// [WithClock] it is one, so that the order of callbacks is repeatable. n must be from 1
// to 65536.
func WithShards(n int) Option {
	if n <= 0 || n > maxShards {
		panic(fmt.Sprintf("timer: WithShards: the number of shards must be from 1 to %d, got %d", maxShards, n))
	}
	return option(func(c *config) { c.numShards = n })
}

// WithExecutor sets the executor that runs callbacks. Without it, or if e is nil, the
// Scheduler makes a pool that grows, and closes the pool too. It never closes an executor
// given here.
//
// Any type with a Submit method will do: see [executor.Executor]. While Submit blocks, no
// timer fires. An [executor.Inline] runs callbacks inside Submit, so a callback that
// blocks stops the Scheduler. If Submit refuses a callback, it runs on a new goroutine.
func WithExecutor(e executor.Executor) Option {
	return option(func(c *config) { c.executor = e })
}

// WithMaxPending limits how many timers of [Scheduler.Start] and StartWithin may be
// pending at a time. Beyond the limit, these methods return [ErrTooManyPending]. The
// default is no limit. n must be positive.
//
// Methods that cannot return an error, such as AfterFunc, ignore the limit.
func WithMaxPending(n int) Option {
	if n <= 0 {
		panic(fmt.Sprintf("timer: WithMaxPending: the limit must be positive, got %d", n))
	}
	return option(func(c *config) { c.maxPending = n })
}

// WithPanicHandler sets the function that is called when a callback panics, with the
// value of the panic and the stack. f runs on the goroutine that panicked. If f panics
// too, the program ends, unless an executor given by [WithExecutor] recovers the panic. f
// must not be nil.
//
// Without WithPanicHandler, an executor given by WithExecutor handles panics itself. The
// Scheduler's own executor prints them to standard error.
func WithPanicHandler(f func(v any, stack []byte)) Option {
	if f == nil {
		panic("timer: WithPanicHandler: the func must not be nil")
	}
	return option(func(c *config) { c.onPanic = f })
}

// WithClock sets the clock, for example a virtual clock of package timertest. The default
// is the system's monotonic clock or, in a testing/synctest bubble, the bubble's clock. A
// nil c means the default.
//
// With a virtual clock, [WithExecutor] decides where callbacks run. An [executor.Inline]
// runs them inside Advance, one by one, in a repeatable order. Advance waits for them, so
// they must not sleep on that clock. With other executors Advance does not wait, and the
// clock may have moved on when a callback runs.
func WithClock(c clock.Clock) Option {
	return option(func(cfg *config) { cfg.clock = c })
}

// maxShards is the limit of WithShards. No machine needs more.
const maxShards = 1 << 16

func newConfig(opts []Option) config {
	c := config{tick: DefaultTick, slotsPerLevel: slotsPerLevel}
	for i, o := range opts {
		if o == nil {
			panic(fmt.Sprintf("timer: New: option %d is nil", i+1))
		}
		o.apply(&c)
	}
	if c.clock == clock.System() {
		c.clock = nil
	}
	switch {
	case c.numShards != 0:
	case c.clock != nil:
		c.numShards = 1
	default:
		c.numShards = defaultNumShards(runtime.GOMAXPROCS(0))
	}
	return c
}
