package purgatory

import (
	"fmt"
	"math/bits"
	"runtime"
)

// An Option configures a Purgatory: see [New].
type Option interface{ apply(*config) }

type config struct {
	shardCount int
	onPanic    func(v any, stack []byte)
}

type option func(*config)

func (f option) apply(c *config) { f(c) }

// WithShards sets the number of shards: groups of keys, each with its own lock. The
// default is 16 times GOMAXPROCS, rounded up to a power of two. WithShards panics
// unless n is a power of two up to 65536.
func WithShards(n int) Option {
	if n <= 0 || n > 1<<16 || n&(n-1) != 0 {
		panic(fmt.Sprintf("purgatory: WithShards: the number of shards must be a power of two up to 65536, got %d", n))
	}
	return option(func(c *config) { c.shardCount = n })
}

// WithPanicHandler sets the function that is called when an operation panics in
// CheckAndComplete or at the timeout. f gets the panic's value and stack, and must not
// panic itself. The default prints both to standard error. WithPanicHandler panics if f
// is nil.
func WithPanicHandler(f func(v any, stack []byte)) Option {
	if f == nil {
		panic("purgatory: WithPanicHandler with a nil func")
	}
	return option(func(c *config) { c.onPanic = f })
}

func newConfig(opts []Option) config {
	c := config{
		shardCount: 1 << bits.Len(uint(16*runtime.GOMAXPROCS(0)-1)),
		onPanic:    printPanic,
	}
	for i, o := range opts {
		if o == nil {
			panic(fmt.Sprintf("purgatory: New: option %d is nil", i+1))
		}
		o.apply(&c)
	}
	return c
}
