package timer

import (
	"fmt"
	"runtime"
	"time"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timingwheel"
)

// Defaults of the options.
const (
	DefaultTick      = 100 * time.Microsecond
	DefaultWheelSize = 256
)

// shardsPerProc: with two of them two procs that stop timers of each other's got
// into each other's way: BenchmarkChurn, n=1M/p=2, 371 ns, with four 300, with eight
// 244; BenchmarkKeyedSet, n=1000000/p=2, 545, 438 and 458 ns.
const shardsPerProc = 8

// An Option changes how [New] makes a Scheduler.
type Option interface{ apply(*config) }

type config struct {
	tick       time.Duration
	wheelSize  int
	shards     int // 0: by GOMAXPROCS, or 1 under a given clock
	executor   executor.Executor
	maxPending int // 0: no limit
	onPanic    func(v any, stack []byte)
	clock      clock.Clock // nil: the system's
	slack      slack
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

// WithTick sets the length of a tick, to which deadlines are rounded up. The
// default is [DefaultTick]. A coarser tick makes fewer wake-ups. New panics if
// tick is not positive.
func WithTick(tick time.Duration) Option {
	return option(func(c *config) { c.tick = tick })
}

// WithSlack lets timers fire later than their deadlines, to fire together with
// others: by up to a share of their delay, but at least by least and at most by most.
// A timer never fires early, and is due at the latest at the end of that window. The
// default is no slack.
//
// The moment that is chosen in the window is the multiple of the largest power of two,
// in ticks from a moment that all Schedulers of the process have in common. So
// timers whose windows overlap share wake-ups, whoever started them, and most of the
// CPU that a timer costs is that of its wake-up. This is what the slack of Linux's
// timers and the leeway of libdispatch's are for. Give it where nobody minds: a
// request's timeout of 30 s need not be kept to a tenth of a millisecond, a retry
// after a second may come 10 ms later.
//
//	timer.New(timer.WithSlack(0.01, time.Millisecond, time.Second))
//
// It holds for all timers of the Scheduler: contexts, those of a Keyed, and tickers
// and Jobs too, of which each tick may be late by that much, though the next is not
// later for it. [Scheduler.StartWithin] and [Handle.ResetWithin] have a slack of their
// own. What tells of a deadline tells the one that was asked for. Order within a
// shard is that of the chosen moments, and lateness in Stats counts from these.
//
// New panics unless share is from 0 to 1 and 0 <= least <= most.
func WithSlack(share float64, least, most time.Duration) Option {
	return option(func(c *config) {
		if !(share >= 0 && share <= 1) || least < 0 || most < least {
			panic(fmt.Sprintf("timer: WithSlack: the share must be from 0 to 1, and 0 <= least <= most, they are %v, %v and %v",
				share, least, most))
		}
		c.slack = slack{share, least, most}
	})
}

// WithWheelSize sets the number of slots in each level of the timing wheel. The
// default is [DefaultWheelSize]. New panics unless it is a power of two from 2
// to [timingwheel.MaxSize].
func WithWheelSize(slots int) Option {
	return option(func(c *config) { c.wheelSize = slots })
}

// WithShards sets the number of shards that timers are spread over, each with a
// lock of its own. The default is eight times GOMAXPROCS, or one if a clock is
// given. A shard is made when it is first used. Timers start on the first one; while
// many of them at a time want it, on one for each proc. The keys of a [Keyed] are
// spread over all shards by their hash: then more shards mean less waiting. New panics
// if n is not positive.
func WithShards(n int) Option {
	return option(func(c *config) {
		if n <= 0 {
			panic(fmt.Sprintf("timer: WithShards: the number of shards must be positive, it is %d", n))
		}
		c.shards = n
	})
}

// WithExecutor sets where callbacks run. The default is a growing pool that the
// Scheduler makes and ends, or, if a clock is given, the goroutine that advances
// it. An executor that is given here is never shut down by the Scheduler, and
// its own panic handler applies. An [executor.Inline] runs callbacks on the poller, one
// after the other: one that blocks stops the Scheduler, its contexts included. Another
// one that may block its submitter, or that is not of package executor, is fed by a goroutine of the Scheduler's that
// lives while something is to be handed over, so that it never holds up other
// timers' expiry. What an executor that blocks its submitter puts off waits before
// that goroutine, without bound, and is counted in Stats as Queued. With
// [WithMaxPending] it is felt by who starts timers: a timer keeps its room until its
// callback is handed over, also one that was due at once.
func WithExecutor(e executor.Executor) Option {
	return option(func(c *config) { c.executor = e })
}

// WithMaxPending limits how many timers may be pending at a time. A timer that
// fires or is stopped makes room at once, but see [WithExecutor] for executors that
// may block. The default is no limit. New panics if n is not positive.
//
// Beyond the limit Start and [Keyed.Set] return [ErrTooManyPending]. What has no
// error to return falls back: Timers, Tickers, Jobs, Sleep and contexts go on by a
// timer of package time's, or an alarm of the clock that was given, and are counted
// in Stats as FellBack. Were they not started, timeouts would fail to come just
// when the process is overloaded. So the limit bounds the memory of the Scheduler,
// not that of the process: who wants that uses Start.
//
// Stop, Reset and Close do to those that fell back what they do to others. One
// that is started again, by a Reset, is the Scheduler's again if there is room. A
// Ticker stays outside until then, a Job as long as it lives.
func WithMaxPending(n int) Option {
	return option(func(c *config) {
		if n <= 0 {
			panic(fmt.Sprintf("timer: WithMaxPending: the limit must be positive, it is %d", n))
		}
		c.maxPending = n
	})
}

// WithPanicHandler sets what is told of a callback's panic, on the goroutine
// that ran the callback: the value and the stack. The default prints both to
// standard error. A handler that panics itself ends the program, which is how to
// choose what package time does. It does not apply to an executor given by
// [WithExecutor].
func WithPanicHandler(f func(v any, stack []byte)) Option {
	return option(func(c *config) { c.onPanic = f })
}

// WithClock sets the clock, such as a virtual one from package timertest. Then
// callbacks run on the goroutine that advances the clock and there is one shard,
// unless other options say otherwise: the same program gives the same order
// every time. The default is the system's monotonic clock, or the fake clock of
// the testing/synctest bubble that New is called in; to give [clock.System] is to
// give none.
func WithClock(c clock.Clock) Option {
	return option(func(cfg *config) { cfg.clock = c })
}

func newConfig(opts []Option) config {
	c := config{tick: DefaultTick, wheelSize: DefaultWheelSize}
	for _, o := range opts {
		o.apply(&c)
	}
	if c.tick <= 0 {
		panic(fmt.Sprintf("timer: WithTick: the tick must be positive, it is %v", c.tick))
	}
	if _, err := timingwheel.New[struct{}](1, c.wheelSize, 0); err != nil {
		panic(fmt.Sprintf("timer: WithWheelSize: %v", err))
	}
	if c.clock == clock.System() {
		c.clock = nil
	}
	if c.shards == 0 {
		c.shards = 1
		if c.clock == nil {
			c.shards = shardsPerProc * runtime.GOMAXPROCS(0)
		}
	}
	return c
}
