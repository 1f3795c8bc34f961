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

// wheelSize is the number of slots in each level of the wheels. A test makes it less.
const wheelSize = 256

// An Option configures a Scheduler that [New] makes. The function that returns it
// panics if its argument is out of range.
type Option interface{ apply(*config) }

type config struct {
	tick       time.Duration
	wheelSize  int
	shards     int // 0: by GOMAXPROCS
	executor   executor.Executor
	maxPending int // 0: no limit
	onPanic    func(v any, stack []byte)
	clock      clock.Clock // nil: the system's
	slack      slack
	name       string
}

// slack is how late timers may fire: a share of their delays, from least to most.
type slack struct {
	share       float64
	least, most time.Duration // most 0: none
}

// of returns the slack of a timer with delay d.
func (s *slack) of(d time.Duration) time.Duration {
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

// WithSlack lets timers fire later than their deadlines so that they fire together
// with others. A timer's slack is a share of its delay, but no less than least and no
// more than most. The timer never fires before its deadline, and falls due within its
// slack after it. The default is no slack.
//
// Within that window a timer falls due at the roundest moment, so timers whose windows
// overlap share wake-ups, which are most of the CPU that timers cost: any number of timers
// with a slack of 10 ms fire at 104 moments a second at the most. A request's timeout of
// 30 s need not be kept to a tenth of a millisecond:
//
//	timer.New(timer.WithSlack(0.01, time.Millisecond, time.Second))
//
// Each tick of a ticker may be late by that much, but the next is no later for it.
// [Scheduler.StartWithin] and [Handle.MoveWithin] take a slack of their own. Whatever
// reports a deadline reports the one that was asked for.
//
// WithSlack panics unless share is from 0 to 1 and 0 <= least <= most.
func WithSlack(share float64, least, most time.Duration) Option {
	if !(share >= 0 && share <= 1) || least < 0 || most < least {
		panic(fmt.Sprintf("timer: WithSlack: the share must be from 0 to 1, and 0 <= least <= most, got %v, %v and %v",
			share, least, most))
	}
	return option(func(c *config) { c.slack = slack{share, least, most} })
}

// WithShards sets the number of shards that timers are spread over, each with a lock
// of its own. The default is eight times GOMAXPROCS, but no more than 64 or twice
// GOMAXPROCS. A shard is made when it is first used. All timers start on
// the first one until goroutines often find it locked; then new ones are spread over a shard
// for each proc, or more. WithShards panics unless n is from 1 to 65536.
func WithShards(n int) Option {
	if n <= 0 || n > maxShards {
		panic(fmt.Sprintf("timer: WithShards: the number of shards must be from 1 to %d, got %d", maxShards, n))
	}
	return option(func(c *config) { c.shards = n })
}

// WithExecutor sets where callbacks run. The default, also for a nil e, is a growing
// pool that the Scheduler makes and ends. The Scheduler never closes an executor that is
// given here. Panics go to its own panic handler, unless [WithPanicHandler] is given too.
//
// Anything with a Submit method will do: see [executor.Executor]. It must not block, as the
// poller submits to it: while Submit blocks nothing fires. An [executor.Inline] runs
// callbacks on the poller, one after the other: one that blocks stops the Scheduler. A
// callback that the executor refuses runs on a goroutine of its own, and is counted in
// Stats as Refused.
func WithExecutor(e executor.Executor) Option {
	return option(func(c *config) { c.executor = e })
}

// WithMaxPending limits how many timers of [Scheduler.Start] and StartWithin may be pending
// at a time. Beyond it they return [ErrTooManyPending], and the timer is counted in Stats as
// rejected. One that fires or is stopped makes room at once. The default is no limit.
//
// What cannot return an error is neither refused nor counted against the limit: AfterFunc,
// NewTimer, NewTicker, Sleep and the like. If they were not started, timeouts would fail to
// come just when the process is overloaded. Stats' Pending counts all. WithMaxPending panics
// if n is not positive.
func WithMaxPending(n int) Option {
	if n <= 0 {
		panic(fmt.Sprintf("timer: WithMaxPending: the limit must be positive, got %d", n))
	}
	return option(func(c *config) { c.maxPending = n })
}

// WithPanicHandler sets the function that gets the panics of callbacks: the value and
// the stack. It runs on the goroutine that panicked. The default prints both to
// standard error. WithPanicHandler panics if f is nil.
//
// A panic of f is not recovered. It ends the program, which is how to choose what
// package time does; but an executor given by [WithExecutor] may recover it, as those
// of package executor do.
//
// With [WithExecutor], f gets the panics of this Scheduler's callbacks, and the executor
// never sees them. Without a WithPanicHandler they are the executor's to deal with.
func WithPanicHandler(f func(v any, stack []byte)) Option {
	if f == nil {
		panic("timer: WithPanicHandler: the func must not be nil")
	}
	return option(func(c *config) { c.onPanic = f })
}

// WithClock sets the clock, such as a virtual one from package timertest. The default, also
// for [clock.System] or nil, is the system's monotonic clock, or the fake clock of the
// testing/synctest bubble that New is called in.
//
// The clock does not decide where callbacks run. With an [executor.Inline], given by
// [WithExecutor], they run on the goroutine that advances the clock, one by one, and the
// same program gives the same order every time.
func WithClock(c clock.Clock) Option {
	return option(func(cfg *config) { cfg.clock = c })
}

// maxShards is more than any machine has use for.
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
	if c.shards == 0 {
		c.shards = defaultShards(runtime.GOMAXPROCS(0))
	}
	return c
}
