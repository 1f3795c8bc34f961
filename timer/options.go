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

// wheelSize is the number of slots in each level of the wheels. Tests use fewer.
const wheelSize = 256

// An Option configures a Scheduler made by [New]. A function that returns an Option
// panics if its argument is not allowed.
type Option interface{ apply(*config) }

type config struct {
	tick       time.Duration
	wheelSize  int
	shards     int // 0: defaultShards
	executor   executor.Executor
	maxPending int // 0: no limit
	onPanic    func(v any, stack []byte)
	clock      clock.Clock // nil: the system's
	slack      slack
	name       string
}

// slack says how late timers may fire: share × delay, limited to the range from least to
// most.
type slack struct {
	share       float64
	least, most time.Duration // if most is 0, there is no slack
}

// forDelay returns the slack of a timer with delay d.
func (s *slack) forDelay(d time.Duration) time.Duration {
	if s.most == 0 {
		return 0
	}
	return min(max(time.Duration(s.share*float64(d)), s.least), s.most)
}

type option func(*config)

func (f option) apply(c *config) { f(c) }

// WithTick sets the length of a tick, to which deadlines are rounded up. The default
// is [DefaultTick]. A coarser tick causes fewer wake-ups. WithTick panics if tick is
// not positive.
func WithTick(tick time.Duration) Option {
	if tick <= 0 {
		panic(fmt.Sprintf("timer: WithTick: the tick must be positive, got %v", tick))
	}
	return option(func(c *config) { c.tick = tick })
}

// WithSlack lets timers fire later than their deadlines, so that several timers fire in
// one wake-up. Wake-ups are most of the CPU cost of timers. A timer's slack is share ×
// its delay, limited to the range from least to most. The timer never fires before its
// deadline. It falls due at most its slack after the deadline. The default is no slack.
//
// For example, a request's timeout of 30 s need not be exact to a tenth of a millisecond:
//
//	timer.New(timer.WithSlack(0.01, time.Millisecond, time.Second))
//
// Of all moments that its slack allows, a timer falls due at the roundest one. So timers
// meet at the same moments: with a slack of 10 ms, any number of timers fire at no more
// than 104 moments a second.
//
// A tick of a ticker may be late by its slack, but that does not delay the next tick.
// [Scheduler.StartWithin] and [Handle.MoveWithin] take the slack as an argument. Methods
// that return a deadline return it without the slack.
//
// WithSlack panics unless share is from 0 to 1 and 0 <= least <= most.
func WithSlack(share float64, least, most time.Duration) Option {
	if !(share >= 0 && share <= 1) || least < 0 || most < least {
		panic(fmt.Sprintf("timer: WithSlack: the share must be from 0 to 1, and 0 <= least <= most, got %v, %v and %v",
			share, least, most))
	}
	return option(func(c *config) { c.slack = slack{share, least, most} })
}

// WithShards sets the number of shards. A shard is a part of the Scheduler's timers with
// a lock of its own. More shards let more goroutines start and stop timers at once.
//
// The default is 8 × GOMAXPROCS, but at most 64, or 2 × GOMAXPROCS if that is more. With
// [WithClock] the default is one, so that the order of callbacks is repeatable. A shard
// is made when it is first used. All timers start on the first shard, until goroutines
// often find it locked. WithShards panics unless n is from 1 to 65536.
func WithShards(n int) Option {
	if n <= 0 || n > maxShards {
		panic(fmt.Sprintf("timer: WithShards: the number of shards must be from 1 to %d, got %d", maxShards, n))
	}
	return option(func(c *config) { c.shards = n })
}

// WithExecutor sets the executor that runs callbacks. If e is nil, or without
// WithExecutor, the Scheduler makes a pool that grows, and closes it too. The Scheduler
// never closes an executor given here. The executor handles a callback's panic, unless
// there is a [WithPanicHandler] too.
//
// Any type with a Submit method will do: see [executor.Executor]. Submit must not block,
// because the poller calls it: while it blocks, no timer fires. An [executor.Inline] runs
// callbacks on the poller, one after another: a callback that blocks stops the Scheduler.
// If the executor refuses a callback, the callback runs on a new goroutine, and Stats
// counts it as Refused.
func WithExecutor(e executor.Executor) Option {
	return option(func(c *config) { c.executor = e })
}

// WithMaxPending limits how many timers of [Scheduler.Start] and StartWithin may be
// pending at a time. Beyond the limit, these methods return [ErrTooManyPending], and
// Stats counts the timer as Rejected. The default is no limit.
//
// The limit does not apply to AfterFunc, NewTimer, NewTicker, Sleep and other methods
// that cannot return an error. If they started no timer, timeouts would fail just when
// the process is overloaded. Pending in Stats counts all timers. WithMaxPending panics if
// n is not positive.
func WithMaxPending(n int) Option {
	if n <= 0 {
		panic(fmt.Sprintf("timer: WithMaxPending: the limit must be positive, got %d", n))
	}
	return option(func(c *config) { c.maxPending = n })
}

// WithPanicHandler sets the function that is called when a callback panics, with the
// value of the panic and the stack. f runs on the goroutine that panicked. The default
// prints both to standard error. WithPanicHandler panics if f is nil.
//
// If f itself panics, the program ends. An executor given by [WithExecutor] may recover
// that panic.
//
// With [WithExecutor], f handles the panics of this Scheduler's callbacks. Without
// WithPanicHandler, the executor handles them.
func WithPanicHandler(f func(v any, stack []byte)) Option {
	if f == nil {
		panic("timer: WithPanicHandler: the func must not be nil")
	}
	return option(func(c *config) { c.onPanic = f })
}

// WithClock sets the clock, for example a virtual clock of package timertest. If c is nil
// or [clock.System], or without WithClock, the Scheduler follows the system's monotonic
// clock. If it is made in a testing/synctest bubble, it follows the bubble's clock.
//
// With a virtual clock, [WithExecutor] decides where callbacks run. An [executor.Inline]
// runs them on the goroutine that advances the clock, one by one: the same program always
// gives the same order. Such callbacks must not sleep on that clock, because Advance
// waits for them. With other executors Advance does not wait. If a callback then starts a
// timer, the delay counts from the time that the clock has reached.
func WithClock(c clock.Clock) Option {
	return option(func(cfg *config) { cfg.clock = c })
}

// maxShards is the limit of WithShards. No machine needs more.
const maxShards = 1 << 16

func newConfig(opts []Option) config {
	c := config{tick: DefaultTick, wheelSize: wheelSize}
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
	case c.shards != 0:
	case c.clock != nil:
		c.shards = 1
	default:
		c.shards = defaultShards(runtime.GOMAXPROCS(0))
	}
	return c
}
