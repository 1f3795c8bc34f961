package executor

import (
	"context"
	"fmt"
	"runtime"
	"runtime/pprof"
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
	labels     context.Context
}

type option func(*config)

func (o option) apply(c *config)         { o(c) }
func (o option) applyPool(c *poolConfig) { o(&c.config) }

type poolOption func(*poolConfig)

func (o poolOption) applyPool(c *poolConfig) { o(c) }

// WithPanicHandler sets the function that is called when a callback panics, with the
// value of the panic and the stack. It runs on the goroutine that panicked, before
// the callback counts as ended. Several goroutines may call it at a time. The default
// prints both to standard error. WithPanicHandler panics if h is nil.
//
// A panic of h is not recovered. On a goroutine of the executor it ends the process.
// So this makes a panic in a callback end the program:
//
//	executor.WithPanicHandler(func(v any, _ []byte) { panic(v) })
//
// Where callbacks run on the submitting goroutine ([Inline], [CallerRuns]), the panic
// of h reaches the caller of Submit.
func WithPanicHandler(h func(v any, stack []byte)) Option {
	if h == nil {
		panic("executor: WithPanicHandler: the func must not be nil")
	}
	return option(func(c *config) { c.panicHandler = h })
}

// WithWorkers sets how many workers a [Pool] starts before it lets callbacks wait. It
// starts more when callbacks hold their workers up, or workers have to wait for a
// processor. The default is the GOMAXPROCS of the moment when the pool is made.
// WithWorkers panics if n is less than 1, and NewPool if it is more than a given
// WithMaxWorkers.
func WithWorkers(n int) PoolOption {
	if n < 1 {
		panic(fmt.Sprintf("executor: WithWorkers: the number of workers must be positive, got %d", n))
	}
	return poolOption(func(c *poolConfig) { c.workers = n })
}

// WithMaxWorkers bounds how far a [Pool] grows beyond its base when callbacks block.
// The default is unbounded: up to one worker for each callback that has not ended. If
// n is below the default of WithWorkers it lowers that too. WithMaxWorkers panics if
// n is less than 1.
//
// A bounded pool whose workers all block runs nothing until one of them returns.
func WithMaxWorkers(n int) PoolOption {
	if n < 1 {
		panic(fmt.Sprintf("executor: WithMaxWorkers: the number of workers must be positive, got %d", n))
	}
	return poolOption(func(c *poolConfig) { c.maxWorkers = n })
}

// WithQueue bounds how many callbacks may wait in a [Pool], beyond those for which it
// has started a worker. [WithOverload] says what happens to one more. The default is
// unbounded. It panics if n is less than 1.
func WithQueue(n int) PoolOption {
	if n < 1 {
		panic(fmt.Sprintf("executor: WithQueue: the number of callbacks must be positive, got %d", n))
	}
	return poolOption(func(c *poolConfig) { c.queue = n })
}

// WithOverload sets what a [Pool] does with a callback when its queue is full. The
// default is [Block]. It has no effect without [WithQueue], since the queue is then
// never full. It panics if the policy is unknown.
func WithOverload(policy Overload) PoolOption {
	if policy < Block || policy > Reject {
		panic(fmt.Sprintf("executor: WithOverload: the policy must be Block, CallerRuns or Reject, got %d", int(policy)))
	}
	return poolOption(func(c *poolConfig) { c.overload = policy })
}

// WithLabels sets profiler labels of the goroutines on which a [Pool] runs callbacks,
// so that profiles tell whose callbacks they are. A label that a callback sets with
// [pprof.SetGoroutineLabels] may stay until the goroutine ends. The default is none.
func WithLabels(labels pprof.LabelSet) PoolOption {
	return poolOption(func(c *poolConfig) {
		c.labels = pprof.WithLabels(context.Background(), labels)
	})
}

func newConfig(function string, opts []Option) config {
	c := config{panicHandler: printPanic}
	for i, o := range opts {
		notNil(function, i, o)
		o.apply(&c)
	}
	return c
}

// notNil panics if an option of the function is nil.
func notNil(function string, i int, option any) {
	if option == nil {
		panic(fmt.Sprintf("executor: %s: option %d is nil", function, i+1))
	}
}

func newPoolConfig(opts []PoolOption) poolConfig {
	c := poolConfig{config: newConfig("NewPool", nil)}
	for i, o := range opts {
		notNil("NewPool", i, o)
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
