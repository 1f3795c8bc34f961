package idle

import (
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"time"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
)

// Defaults of the options.
const (
	DefaultTick  = 10 * time.Millisecond
	DefaultSlack = 0.01
)

// A ConnsOption configures the Conns of [NewConns] and [NewListener]. Every [Option] is a
// ConnsOption too.
type ConnsOption interface{ applyConns(*config) }

// An Option configures a Monitor of [New], and also a Conns.
type Option interface {
	ConnsOption
	apply(*config)
}

type config struct {
	tick    time.Duration
	slack   float64
	clock   clock.Clock // nil: the system's
	onPanic func(v any, stack []byte)
	name    string
	onIdle  any // nil, or a func(v T, since time.Time) (evict bool)
}

func newConfig() config {
	return config{tick: DefaultTick, slack: DefaultSlack, onPanic: printPanic}
}

type option func(*config)

func (o option) apply(c *config)      { o(c) }
func (o option) applyConns(c *config) { o(c) }

// WithTick sets the tick: evictions are late by up to one tick. However many things are
// watched, there is at most one wake-up per tick. The default is [DefaultTick]. WithTick
// panics if tick is not positive.
func WithTick(tick time.Duration) Option {
	if tick <= 0 {
		panic(fmt.Sprintf("idle: WithTick: the tick must be positive, got %v", tick))
	}
	return option(func(c *config) { c.tick = tick })
}

// WithSlackShare sets how late an eviction may be, as a share of the entry's timeout. With
// slack, many evictions share a wake-up. The default is [DefaultSlack]: 0.3 s for a
// timeout of 30 s. WithSlackShare panics unless share is from 0 to 1.
func WithSlackShare(share float64) Option {
	if !(share >= 0 && share <= 1) {
		panic(fmt.Sprintf("idle: WithSlackShare: the share must be from 0 to 1, got %v", share))
	}
	return option(func(c *config) { c.slack = share })
}

// WithClock sets the clock, such as a virtual clock of package timertest. Callbacks then
// run on the goroutine that advances the clock. The default is [clock.System], or in a
// testing/synctest bubble the bubble's clock.
func WithClock(clk clock.Clock) Option {
	if clk == clock.System() {
		clk = nil
	}
	return option(func(c *config) { c.clock = clk })
}

// WithPanicHandler sets the function that is called when a callback panics, on the same
// goroutine. The default prints the panic's value and the stack to standard error.
// WithPanicHandler panics if f is nil.
func WithPanicHandler(f func(v any, stack []byte)) Option {
	if f == nil {
		panic("idle: WithPanicHandler: the func must not be nil")
	}
	return option(func(c *config) { c.onPanic = f })
}

// WithName names the Scheduler of the Monitor or the Conns: see [timer.WithName]. One
// pending timer of the Scheduler may stand for many entries. The default is no name.
func WithName(name string) Option {
	return option(func(c *config) { c.name = name })
}

// WithOnIdle sets a function that decides whether to evict an idle thing, or to close an
// idle connection. If f returns false, the thing is watched for at least another timeout.
// f also gets the time of the last activity. WithOnIdle panics if f is nil. [New] panics
// unless T is the type that the Monitor watches; for a Conns it is *Conn.
//
// A thing that is touched while f runs is not evicted. A connection is different: f may
// use it, for example to send a ping or a farewell, so only the result of f counts. It
// stays open until f returns, so set a deadline for a write in f. If f panics, the thing
// is evicted.
func WithOnIdle[T any](f func(v T, since time.Time) (evict bool)) Option {
	if f == nil {
		panic("idle: WithOnIdle: the func must not be nil")
	}
	return option(func(c *config) { c.onIdle = f })
}

// onIdleOf returns the func of WithOnIdle, or nil.
func onIdleOf[T any](function string, c *config) func(v T, since time.Time) bool {
	f, ok := c.onIdle.(func(T, time.Time) bool)
	if !ok && c.onIdle != nil {
		panic(fmt.Sprintf("idle: %s: WithOnIdle needs a %T, got a %T", function, f, c.onIdle))
	}
	return f
}

// newScheduler makes a Monitor's Scheduler. It checks entries on its own goroutine,
// because most were touched and only need a new timer.
func (c *config) newScheduler() *timer.Scheduler {
	tick := c.tick
	if c.clock == nil {
		tick = max(tick/16, 1) // the Monitor's ticks begin at another time than the Scheduler's
	}
	return timer.New(timer.WithTick(tick), timer.WithName(c.name), timer.WithClock(c.clock),
		timer.WithExecutor(executor.NewInline()))
}

// numStripes returns the number of stripes of a Monitor.
func (c *config) numStripes() int {
	if c.clock != nil {
		return 1
	}
	return 2 * runtime.GOMAXPROCS(0)
}

// newPool makes the executor for a Monitor's callbacks. If a clock was given, callbacks
// run on the goroutine that advances the clock.
func (c *config) newPool() callbackPool {
	if c.clock != nil {
		return executor.NewInline(executor.WithPanicHandler(c.onPanic))
	}
	poolOpts := []executor.PoolOption{executor.WithPanicHandler(c.onPanic)}
	if c.name != "" {
		poolOpts = append(poolOpts, executor.WithLabels(pprof.Labels("scheduler", c.name)))
	}
	return executor.NewPool(poolOpts...)
}

// printPanic is the default of WithPanicHandler.
func printPanic(v any, stack []byte) {
	fmt.Fprintf(os.Stderr, "idle: panic in a callback: %v\n\n%s\n", v, stack)
}

// mustNotBeNil panics if option is nil. option is argument i of function, counted from 0.
func mustNotBeNil(function string, i int, option any) {
	if option == nil {
		panic(fmt.Sprintf("idle: %s: option %d is nil", function, i+1))
	}
}

func checkTimeout(function string, d time.Duration) {
	if d <= 0 {
		panic(fmt.Sprintf("idle: %s: the timeout must be positive, got %v", function, d))
	}
}
