package durable

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tickless/tickless/durable/internal/places"
	"github.com/tickless/tickless/durable/store"
)

// The defaults of the options of a [Worker] and of its handlers.
const (
	DefaultConcurrency     = 256
	DefaultLease           = 30 * time.Second
	DefaultMaxCrashes      = 5
	DefaultMaxAttempts     = 25
	DefaultBackoff         = time.Second
	DefaultMaxBackoff      = time.Hour
	DefaultTimeout         = 10 * time.Minute
	DefaultShutdownTimeout = 23 * time.Second
)

// A WorkerOption changes how [NewWorker] makes a Worker.
type WorkerOption interface{ applyToWorker(*workerConfig) }

// A HandlerOption changes how a Worker runs the tasks of one handler, if given to
// [Worker.Handle], or of all handlers, if given to [NewWorker].
type HandlerOption interface {
	WorkerOption
	applyToHandler(*handlerConfig)
}

type workerConfig struct {
	name            string
	version         string // of the program; empty: the build's
	concurrency     int
	lease           time.Duration
	maxCrashes      int
	shutdownTimeout time.Duration
	allowUnsafe     bool
	deadLimit       deadLimit
	handlerDefaults handlerConfig
}

type handlerConfig struct {
	maxAttempts int
	backoff     time.Duration
	maxBackoff  time.Duration
	timeout     time.Duration
	limit       places.Limit
	middleware  []func(Handler) Handler
	formerNames []string
	deadHook    func(ctx context.Context, d Delivery, err error) // nil: none
}

type workerOption func(*workerConfig)

func (f workerOption) applyToWorker(c *workerConfig) { f(c) }

type handlerOption func(*handlerConfig)

func (f handlerOption) applyToWorker(c *workerConfig)   { f(&c.handlerDefaults) }
func (f handlerOption) applyToHandler(c *handlerConfig) { f(c) }

// maxCount bounds numbers of handlers, attempts and crashes. Larger numbers are mistakes.
const maxCount = 1_000_000

func checkRange(option string, ok bool, v any, allowed string) {
	if !ok {
		panic(fmt.Sprintf("durable: %s: must be %s, got %v", option, allowed, v))
	}
}

// WithName names the Worker. In profiles the Worker's goroutines have the label
// "worker" with this name. Goroutines of handlers also have the label "handler". Its
// timers run on a Scheduler with this name: see [timer.WithName]. The default is no
// name.
func WithName(name string) WorkerOption {
	return workerOption(func(c *workerConfig) { c.name = name })
}

// WithVersion sets the version of the program, for [Client.Workers]. The default is the
// version of the main module.
func WithVersion(version string) WorkerOption {
	return workerOption(func(c *workerConfig) { c.version = version })
}

// WithConcurrency sets how many handlers the Worker runs at a time, its places. The
// default is [DefaultConcurrency]. The last quarter of the places goes only to handlers
// that run nothing, so that a slow handler leaves places for others; a Worker with one
// handler, or with fewer than four places, uses all places for any. n should be at least the
// store's number of shards, because otherwise slow handlers delay others. It panics unless n is
// from 1 to a million.
func WithConcurrency(n int) WorkerOption {
	checkRange("WithConcurrency", n >= 1 && n <= maxCount, n, "from 1 to 1000000")
	return workerOption(func(c *workerConfig) { c.concurrency = n })
}

// WithLease sets how long a lease lasts. The default is [DefaultLease]. The Worker
// extends the leases of running handlers. After a crash, other workers get its tasks
// when the leases have expired. It panics if d is below 100 ms or above a day.
func WithLease(d time.Duration) WorkerOption {
	checkRange("WithLease", d >= 100*time.Millisecond && d <= 24*time.Hour, d, "from 100ms to 24h")
	return workerOption(func(c *workerConfig) { c.lease = d })
}

// WithMaxCrashes sets how many crashes make a run a dead letter. A crash is an attempt
// that ends with a lost lease, usually because the process died. The default is
// [DefaultMaxCrashes]. It panics unless n is from 1 to a million.
//
// A run that has crashed three times may be the cause, and so may one whose next crash
// but one makes it a dead letter. A Worker begins with one such run at a time, beside all
// other tasks. Each that returns allows one more, and a crash takes the number back to one.
func WithMaxCrashes(n int) WorkerOption {
	checkRange("WithMaxCrashes", n >= 1 && n <= maxCount, n, "from 1 to 1000000")
	return workerOption(func(c *workerConfig) { c.maxCrashes = n })
}

// WithShutdownTimeout sets how long Run waits for running handlers after its context has
// ended, or after a Shutdown without a deadline. Then it cancels their contexts, hands their
// tasks back to the store, and returns within two seconds. The default is
// [DefaultShutdownTimeout], because orchestrators kill a process 30 s after they have asked
// it to end. It panics unless d is from 0 to 24 hours.
func WithShutdownTimeout(d time.Duration) WorkerOption {
	checkRange("WithShutdownTimeout", d >= 0 && d <= 24*time.Hour, d, "from 0 to 24h")
	return workerOption(func(c *workerConfig) { c.shutdownTimeout = d })
}

// WithUnsafe allows Run to use a store that may discard tasks. Without it, Run returns
// [ErrUnsafe].
func WithUnsafe() WorkerOption {
	return workerOption(func(c *workerConfig) { c.allowUnsafe = true })
}

// WithMaxAttempts sets the number of attempts after which a failed run becomes a dead
// letter, unless the task has a [Task.MaxAttempts]. The default is
// [DefaultMaxAttempts]. It panics unless n is from 1 to a million.
func WithMaxAttempts(n int) HandlerOption {
	checkRange("WithMaxAttempts", n >= 1 && n <= maxCount, n, "from 1 to 1000000")
	return handlerOption(func(c *handlerConfig) { c.maxAttempts = n })
}

// WithBackoff sets the delay after attempt n: a random time from zero to base*2^(n-1),
// but at most limit. For a repeating task it is also at most the time between two runs.
// The defaults are [DefaultBackoff] and [DefaultMaxBackoff]. Times above 170 years count
// as 170 years. It panics unless 0 <= base <= limit.
func WithBackoff(base, limit time.Duration) HandlerOption {
	checkRange("WithBackoff", base >= 0 && base <= limit, base, fmt.Sprintf("from 0 to the limit %v", limit))
	base, limit = min(base, store.MaxDelay), min(limit, store.MaxDelay)
	return handlerOption(func(c *handlerConfig) { c.backoff, c.maxBackoff = base, limit })
}

// WithTimeout sets how long an attempt may take before its context is cancelled, unless
// the task has a [Task.Timeout]. If the handler still runs one lease later, the attempt
// counts as a crash. A handler that does not return is logged with its stack, and after
// another d its place is given again. The default is [DefaultTimeout]. A time above 170 years
// counts as 170 years. It panics if d is not positive.
func WithTimeout(d time.Duration) HandlerOption {
	checkRange("WithTimeout", d > 0, d, "positive")
	d = min(d, store.MaxDelay) // so that d plus a lease does not overflow
	return handlerOption(func(c *handlerConfig) { c.timeout = d })
}

// WithHandlerConcurrency sets how many tasks of the handler the Worker runs at a time,
// so that a slow handler leaves places for others. The default is no limit. It panics
// unless n is from 1 to a million.
func WithHandlerConcurrency(n int) HandlerOption {
	checkRange("WithHandlerConcurrency", n >= 1 && n <= maxCount, n, "from 1 to 1000000")
	return handlerOption(func(c *handlerConfig) { c.limit.Places = n })
}

// WithRate sets how many tasks of the handler the Worker starts in a second, on
// average. Up to a tenth of them may start at the same time. The default is no limit.
// It panics unless perSecond is from 0.000001, which is one in 11.6 days, to a million.
func WithRate(perSecond float64) HandlerOption {
	checkRange("WithRate", perSecond >= store.MinRate && perSecond <= store.MaxRate, perSecond, "from 0.000001 to 1000000")
	return handlerOption(func(c *handlerConfig) { c.limit.Rate = perSecond })
}

// WithFormerNames makes the handler also run tasks that were scheduled under its former
// names. [Delivery.Handler] has the task's name. Limits and [Worker.HandlerStats] treat each
// name as a handler of its own. Handle panics if a name is empty or taken.
func WithFormerNames(names ...string) HandlerOption {
	names = slices.Clone(names)
	return handlerOption(func(c *handlerConfig) { c.formerNames = names })
}

func newWorkerConfig(opts []WorkerOption) workerConfig {
	c := workerConfig{
		concurrency:     DefaultConcurrency,
		lease:           DefaultLease,
		maxCrashes:      DefaultMaxCrashes,
		shutdownTimeout: DefaultShutdownTimeout,
		handlerDefaults: handlerConfig{
			maxAttempts: DefaultMaxAttempts,
			backoff:     DefaultBackoff,
			maxBackoff:  DefaultMaxBackoff,
			timeout:     DefaultTimeout,
		},
	}
	for i, o := range opts {
		panicIfNil("NewWorker", i, o)
		o.applyToWorker(&c)
	}
	return c
}
