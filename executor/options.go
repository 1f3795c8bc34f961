package executor

import (
	"runtime"

	"github.com/tickless/tickless/internal/callback"
)

// An Option sets up any executor of this package.
type Option interface {
	PoolOption
	apply(*config)
}

// A PoolOption sets up a [Pool]. Every [Option] is one too.
type PoolOption interface{ applyPool(*poolConfig) }

type config struct {
	panicHandler func(v any, stack []byte)
}

type poolConfig struct {
	config
	workers    int
	maxWorkers int // 0: unbounded
	queue      int // 0: unbounded
	overload   Overload
	onLook     callback.Func
}

type option func(*config)

func (o option) apply(c *config)         { o(c) }
func (o option) applyPool(c *poolConfig) { o(&c.config) }

type poolOption func(*poolConfig)

func (o poolOption) applyPool(c *poolConfig) { o(c) }

// WithPanicHandler has h called with the value of every panic in a callback
// and the stack of the goroutine that panicked, on that goroutine, before the
// callback counts as ended. Calls may come from several goroutines at a time.
// The default prints both to standard error. A nil h is refused.
//
// A panic of h is not recovered. On a goroutine of the executor it ends the
// process, and that is how to choose a crash:
//
//	executor.WithPanicHandler(func(v any, _ []byte) { panic(v) })
//
// Where the callback runs on the submitting goroutine ([Inline],
// [CallerRuns]), it reaches the caller of Submit.
func WithPanicHandler(h func(v any, stack []byte)) Option {
	if h == nil {
		panic("executor: WithPanicHandler: nil handler")
	}
	return option(func(c *config) { c.panicHandler = h })
}

// WithWorkers sets how many workers a [Pool] starts before it lets callbacks
// wait: the number that runs while no callback holds its worker up. The
// default is GOMAXPROCS as it is at construction. Fewer than 1 is refused, as
// is more than a given WithMaxWorkers.
func WithWorkers(n int) PoolOption {
	if n < 1 {
		panic("executor: WithWorkers: fewer than 1 worker")
	}
	return poolOption(func(c *poolConfig) { c.workers = n })
}

// WithMaxWorkers bounds how far a [Pool] grows beyond its base when callbacks
// block. The default is unbounded, which means one worker for each callback
// that has not ended. When it is below the default of WithWorkers it lowers
// that too. Fewer than 1 is refused.
//
// A bounded pool whose workers are all blocked runs nothing until one of them
// comes back.
func WithMaxWorkers(n int) PoolOption {
	if n < 1 {
		panic("executor: WithMaxWorkers: fewer than 1 worker")
	}
	return poolOption(func(c *poolConfig) { c.maxWorkers = n })
}

// WithQueue bounds how many callbacks may wait in a [Pool] that no worker has
// been started for; [WithOverload] says what happens to one more. The default
// is unbounded. Fewer than 1 is refused.
func WithQueue(n int) PoolOption {
	if n < 1 {
		panic("executor: WithQueue: fewer than 1 callback")
	}
	return poolOption(func(c *poolConfig) { c.queue = n })
}

// WithOverload sets what a [Pool] does with a callback when its queue is
// full. The default is [Block]. It means nothing without [WithQueue], since
// the queue is then never full. An unknown policy is refused.
func WithOverload(policy Overload) PoolOption {
	if policy < Block || policy > Reject {
		panic("executor: WithOverload: unknown policy")
	}
	return poolOption(func(c *poolConfig) { c.overload = policy })
}

// OnLook has f called after each look of a pool's watchdog, on the watchdog's
// goroutine and without a lock. It is for this module's other packages.
//
// The watchdog's goroutine and that of a scheduler's alarm compete for the place in
// front of a proc's run queue: if their timers go off together, the one that loses
// waits at the end. So each does what is left to do for the other.
func OnLook(f callback.Func) PoolOption {
	return poolOption(func(c *poolConfig) { c.onLook = f })
}

func newConfig(opts []Option) config {
	c := config{panicHandler: printPanic}
	for _, o := range opts {
		o.apply(&c)
	}
	return c
}

func newPoolConfig(opts []PoolOption) poolConfig {
	c := poolConfig{config: newConfig(nil)}
	for _, o := range opts {
		o.applyPool(&c)
	}
	if c.maxWorkers == 0 || c.maxWorkers > unbounded {
		c.maxWorkers = unbounded
	}
	c.workers = min(c.workers, unbounded)
	if c.workers == 0 {
		c.workers = min(runtime.GOMAXPROCS(0), c.maxWorkers)
	}
	if c.workers > c.maxWorkers {
		panic("executor: NewPool: WithWorkers is above WithMaxWorkers")
	}
	if c.queue == 0 || c.queue > unbounded {
		c.queue = unbounded
	}
	return c
}

// unbounded leaves room to be multiplied and added to in an int of 32 bits.
const unbounded = 1 << 28
