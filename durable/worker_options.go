package durable

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// Defaults of the options of a [Worker] and of its handlers.
const (
	DefaultConcurrency     = 256
	DefaultLease           = 30 * time.Second
	DefaultMaxCrashes      = 3
	DefaultMaxAttempts     = 25
	DefaultBackoff         = time.Second
	DefaultMaxBackoff      = time.Hour
	DefaultTimeout         = 10 * time.Minute
	DefaultShutdownTimeout = 30 * time.Second
)

// A WorkerOption changes how [NewWorker] makes a Worker.
type WorkerOption interface{ applyWorker(*workerConfig) }

// A HandlerOption changes what a Worker does with the tasks of one handler, in
// [Worker.Handle]. Given to [NewWorker] it is for all handlers.
type HandlerOption interface {
	WorkerOption
	applyHandler(*handlerConfig)
}

type workerConfig struct {
	name        string
	concurrency int
	lease       time.Duration
	maxCrashes  int
	shutdown    time.Duration
	unsafe      bool
	dead        deadLimit
	handler     handlerConfig
}

type handlerConfig struct {
	attempts int
	backoff  time.Duration
	cap      time.Duration
	timeout  time.Duration
	limit    int     // handlers at a time; 0: as many as the Worker has places
	rate     float64 // tasks a second; 0: any
	weight   int
	around   []func(Handler) Handler
	deadHook func(ctx context.Context, d Delivery, err error) // nil: none
}

type workerOption func(*workerConfig)

func (f workerOption) applyWorker(c *workerConfig) { f(c) }

type handlerOption func(*handlerConfig)

func (f handlerOption) applyWorker(c *workerConfig)   { f(&c.handler) }
func (f handlerOption) applyHandler(c *handlerConfig) { f(c) }

func positive(option string, ok bool, v any) {
	if !ok {
		panic(fmt.Sprintf("durable: %s: out of range: %v", option, v))
	}
}

// WithName names the Worker. While it runs its Scheduler, which ends handlers' times and
// leases, has the name, for what reports on Schedulers: see [timer.WithName]. Profiles have
// it on the Worker's goroutines, as the label "worker", and on those that run handlers with
// the handler's name as the label "handler". It need not be unique. The default is no name.
func WithName(name string) WorkerOption {
	return workerOption(func(c *workerConfig) { c.name = name })
}

// WithConcurrency sets how many handlers run at a time in the Worker. The default is
// [DefaultConcurrency]. With fewer than the store has shards, a slow handler may keep the others
// waiting for longer than one task takes. It panics if n is not positive.
func WithConcurrency(n int) WorkerOption {
	positive("WithConcurrency", n > 0, n)
	return workerOption(func(c *workerConfig) { c.concurrency = n })
}

// WithLease sets how long a task belongs to the Worker without a sign of life:
// so long it takes until another worker gets the tasks of one that has crashed.
// A lease is prolonged after a third of its time, as long as the handler runs.
// The default is [DefaultLease]. It panics if d is below 100 ms or above a day.
func WithLease(d time.Duration) WorkerOption {
	positive("WithLease", d >= 100*time.Millisecond && d <= 24*time.Hour, d)
	return workerOption(func(c *workerConfig) { c.lease = d })
}

// WithMaxCrashes sets how many attempts at a run may end with a lost lease, as
// they do when the process dies, before the run counts as poison and becomes a
// dead letter. What ran when a process died is suspect: a Worker runs one suspect at a time
// beside other tasks. The last of the n, if it is not the first, counts only if the run had
// its Worker to itself: for that the Worker claims nothing else, and waits until its other
// handlers have returned. The worker that finds the lease expired buries the run or, if the
// task repeats, the one that gets it next, which does not run it. The default is
// [DefaultMaxCrashes]. It panics if n is not positive.
func WithMaxCrashes(n int) WorkerOption {
	positive("WithMaxCrashes", n > 0, n)
	return workerOption(func(c *workerConfig) { c.maxCrashes = n })
}

// WithShutdownTimeout sets how long Run waits for its handlers when its context
// was cancelled. The default is [DefaultShutdownTimeout]. It panics if d is
// negative.
func WithShutdownTimeout(d time.Duration) WorkerOption {
	positive("WithShutdownTimeout", d >= 0, d)
	return workerOption(func(c *workerConfig) { c.shutdown = d })
}

// WithUnsafe lets Run begin although the store may throw tasks away, which is
// [ErrUnsafe] otherwise.
func WithUnsafe() WorkerOption {
	return workerOption(func(c *workerConfig) { c.unsafe = true })
}

// WithMaxAttempts sets how often a run is tried before it becomes a dead letter,
// for tasks that do not say it. The default is [DefaultMaxAttempts]. It panics if
// n is not positive.
func WithMaxAttempts(n int) HandlerOption {
	positive("WithMaxAttempts", n > 0, n)
	return handlerOption(func(c *handlerConfig) { c.attempts = n })
}

// WithBackoff sets the delays between attempts: after attempt n it is random
// from zero to base*2^(n-1), and to limit at most, so that tasks that failed
// together do not come back together. A task that repeats comes back within the time
// between two of its runs. The defaults are [DefaultBackoff] and [DefaultMaxBackoff]. A longer
// time counts as [store.MaxDelay]. It panics unless 0 <= base <= limit.
func WithBackoff(base, limit time.Duration) HandlerOption {
	positive("WithBackoff", base >= 0 && base <= limit, base)
	base, limit = min(base, store.MaxDelay), min(limit, store.MaxDelay)
	return handlerOption(func(c *handlerConfig) { c.backoff, c.cap = base, limit })
}

// WithTimeout sets how long an attempt may take before its context is cancelled, for tasks
// that set no timeout of their own. If the handler has not returned one lease later, the worker
// gives the lease up, and the task counts as crashed. The default is [DefaultTimeout], and the
// most is [store.MaxDelay]. WithTimeout panics if d is not positive.
func WithTimeout(d time.Duration) HandlerOption {
	positive("WithTimeout", d > 0, d)
	d = min(d, store.MaxDelay) // a lease can be added to it
	return handlerOption(func(c *handlerConfig) { c.timeout = d })
}

// WithHandlerConcurrency sets how many of the handler's tasks run at a time in the Worker, so
// that slow ones leave places to others. The default is as many as [WithConcurrency] has. It
// panics if n is not positive.
func WithHandlerConcurrency(n int) HandlerOption {
	positive("WithHandlerConcurrency", n > 0, n)
	return handlerOption(func(c *handlerConfig) { c.limit = n })
}

// WithRate sets how many of the handler's tasks begin in a second in the Worker, on average;
// a tenth of that many may begin at once. The default is no limit. It panics unless perSecond
// is positive and finite.
func WithRate(perSecond float64) HandlerOption {
	positive("WithRate", perSecond > 0 && !math.IsInf(perSecond, 1), perSecond)
	return handlerOption(func(c *handlerConfig) { c.rate = perSecond })
}

// WithWeight sets the handler's share of the Worker's places where there are not enough for
// all that is due: that of a handler with weight 2 is twice that of one with 1. What one does
// not need the others have. The default is 1. It panics unless n is from 1 to 1000.
func WithWeight(n int) HandlerOption {
	positive("WithWeight", n >= 1 && n <= 1000, n)
	return handlerOption(func(c *handlerConfig) { c.weight = n })
}

func newWorkerConfig(opts []WorkerOption) workerConfig {
	c := workerConfig{
		concurrency: DefaultConcurrency,
		lease:       DefaultLease,
		maxCrashes:  DefaultMaxCrashes,
		shutdown:    DefaultShutdownTimeout,
		handler: handlerConfig{
			attempts: DefaultMaxAttempts,
			backoff:  DefaultBackoff,
			cap:      DefaultMaxBackoff,
			timeout:  DefaultTimeout,
			weight:   1,
		},
	}
	for i, o := range opts {
		notNil("NewWorker", i, o)
		o.applyWorker(&c)
	}
	return c
}
