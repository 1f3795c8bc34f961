package executor

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
)

// An Option configures any executor of this package.
type Option interface {
	PoolOption
	forAnyExecutor()
}

// A PoolOption configures a [Pool]. Every [Option] is also a PoolOption.
type PoolOption interface{ apply(*config) }

type config struct {
	panicHandler func(v any, stack []byte)
	baseWorkers  int
	maxWorkers   int // 0: noLimit
	labelCtx     context.Context
}

type poolOption func(*config)

func (o poolOption) apply(c *config) { o(c) }

type option struct{ poolOption }

func (option) forAnyExecutor() {}

// WithPanicHandler sets the function that is called when a callback panics, with the
// value of the panic and the stack. By default, both are printed to standard error. h
// runs on the goroutine that panicked, before the callback counts as ended. Several
// goroutines may call h at a time. WithPanicHandler panics if h is nil.
//
// A panic of h ends the process or, in an [Inline], reaches the caller of Submit. So this
// option makes a panic in a callback end the program:
//
//	executor.WithPanicHandler(func(v any, _ []byte) { panic(v) })
func WithPanicHandler(h func(v any, stack []byte)) Option {
	if h == nil {
		panic("executor: WithPanicHandler: the func must not be nil")
	}
	return option{func(c *config) { c.panicHandler = h }}
}

// WithWorkers sets the base number of workers of a [Pool]. The pool starts up to n
// workers as soon as callbacks come in, and more only when callbacks take long. The
// default is GOMAXPROCS or, if that is less, the number given to WithMaxWorkers.
//
// WithWorkers panics if n is less than 1. NewPool panics if n is greater than the number
// given to WithMaxWorkers.
func WithWorkers(n int) PoolOption {
	if n < 1 {
		panic(fmt.Sprintf("executor: WithWorkers: the number of workers must be positive, got %d", n))
	}
	return poolOption(func(c *config) { c.baseWorkers = n })
}

// WithMaxWorkers sets the largest number of workers of a [Pool]. If all of them block,
// other callbacks wait. By default, a Pool has up to one worker for each callback that
// has not ended. WithMaxWorkers panics if n is less than 1.
func WithMaxWorkers(n int) PoolOption {
	if n < 1 {
		panic(fmt.Sprintf("executor: WithMaxWorkers: the number of workers must be positive, got %d", n))
	}
	return poolOption(func(c *config) { c.maxWorkers = n })
}

// WithLabels sets profiler labels on the goroutines of a [Pool]. The default is none. A
// label that a callback sets with [pprof.SetGoroutineLabels] may stay until the goroutine
// ends.
func WithLabels(labels pprof.LabelSet) PoolOption {
	return poolOption(func(c *config) {
		c.labelCtx = pprof.WithLabels(context.Background(), labels)
	})
}

// newConfig applies opts to the defaults. function is the caller's name, for the text of
// panics.
func newConfig[O PoolOption](function string, opts []O) config {
	c := config{panicHandler: func(v any, stack []byte) {
		fmt.Fprintf(os.Stderr, "executor: panic in a callback: %v\n\n%s\n", v, stack)
	}}
	for i, o := range opts {
		if any(o) == nil {
			panic(fmt.Sprintf("executor: %s: option %d is nil", function, i+1))
		}
		o.apply(&c)
	}
	c.baseWorkers = min(c.baseWorkers, noLimit)
	if c.maxWorkers == 0 || c.maxWorkers > noLimit {
		c.maxWorkers = noLimit
	}
	if c.baseWorkers == 0 {
		c.baseWorkers = min(runtime.GOMAXPROCS(0), c.maxWorkers)
	}
	if c.baseWorkers > c.maxWorkers {
		panic(fmt.Sprintf("executor: NewPool: the workers must not be more than WithMaxWorkers(%d), got %d", c.maxWorkers, c.baseWorkers))
	}
	return c
}

// noLimit means that there is no maximum of workers. Sums with it do not overflow a
// 32-bit int.
const noLimit = 1 << 28
