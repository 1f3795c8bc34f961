package executor

import (
	"cmp"
	"context"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"sync"

	"go.uber.org/atomic"
)

// A Pool runs callbacks on few goroutines while they are short, and on as
// many as it takes when they block.
//
// It starts up to its base of workers ([WithWorkers]) as work comes in. They take one
// callback at a time, in the order of submission, and end as soon as nothing waits: an
// idle pool has no goroutine. While callbacks wait, a watchdog checks every millisecond
// whether those before them take long. If so it starts a worker for each. Make one with
// [NewPool].
//
// It is not a limiter by itself: unless [WithMaxWorkers] says so, callbacks
// that block get a goroutine each, with a delay of a few milliseconds.
//
// A pool that is made inside a testing/synctest bubble belongs to that bubble, and one that
// is made outside must not be used inside: its callbacks would run on both sides, and the
// watchdog could not keep the time.
type Pool struct {
	base, max int
	handler   func(v any, stack []byte)
	labels    context.Context // of workers
	start     func()          // p.work as a value: a go statement on it allocates nothing

	// yields says that callbacks take long, and that workers let others run between two of
	// them: see tick.
	yields atomic.Bool

	mu sync.Mutex
	// Guarded by mu.
	queue     queue
	submitted uint64
	rejected  uint64
	panicked  uint64
	workers   int // started and not ended
	peak      int // the most workers there have been
	starting  int // of workers, those that have not begun
	limit     int // workers are started up to here: see tick and retireLocked
	watch     watchdog
	closed    bool
	done      chan struct{} // closed with the last worker; nil unless somebody waits
}

var _ Batcher = (*Pool)(nil)

// NewPool returns a pool. It starts no goroutine before there is work.
func NewPool(opts ...PoolOption) *Pool {
	c := newConfig("NewPool", opts)
	p := &Pool{
		base:    c.workers,
		max:     c.maxWorkers,
		handler: c.panicHandler,
		labels:  cmp.Or(c.labels, context.Background()),
		limit:   c.workers,
	}
	p.start = p.work
	p.watch.init(p.tick)
	return p
}

// Submit hands f to the pool and returns nil, or returns [ErrClosed].
func (p *Pool) Submit(f func()) error {
	_, err := p.SubmitBatch([]func(){f})
	return err
}

// SubmitBatch hands fs to the pool, in order: all of them, or none after Close.
func (p *Pool) SubmitBatch(fs []func()) (accepted int, err error) {
	p.mustBeMade()
	p.mu.Lock()
	if p.closed {
		p.rejected += uint64(len(fs))
		p.mu.Unlock()
		return 0, ErrClosed
	}
	p.queue.push(fs)
	p.submitted += uint64(len(fs))
	n := p.startLocked()
	p.mu.Unlock()
	p.spawn(n)
	return len(fs), nil
}

// Close refuses new work and returns nil. It waits for nothing: callbacks that were
// accepted run to their end.
func (p *Pool) Close() error {
	p.mustBeMade()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return nil
}

// Shutdown does what Close does, and waits for every accepted callback to end. When it
// has returned nil no worker is left. If ctx ends first it returns the error of ctx;
// the callbacks still run to their end. Any number of goroutines may call it, any
// number of times: each call waits. A callback that calls it waits for itself, until
// ctx ends.
func (p *Pool) Shutdown(ctx context.Context) error {
	p.Close()
	p.mu.Lock()
	if p.workers == 0 {
		p.mu.Unlock()
		return nil
	}
	if p.done == nil {
		p.done = make(chan struct{})
	}
	done := p.done
	p.mu.Unlock()
	return await(ctx, done)
}

// mustBeMade panics unless NewPool has made p.
func (p *Pool) mustBeMade() {
	if p.start == nil {
		panic("executor: a Pool that was not made by NewPool")
	}
}

// Stats returns the counts, all of the same moment.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	queued, running := p.queue.len(unbounded), p.workers-p.starting
	return Stats{
		Submitted:   p.submitted,
		Run:         p.submitted - uint64(queued+running),
		Panicked:    p.panicked,
		Rejected:    p.rejected,
		Queued:      queued,
		Running:     running,
		Workers:     p.workers,
		PeakWorkers: p.peak,
	}
}

// startLocked counts in the workers that the queue needs now, and sets the watchdog if
// callbacks wait for others. The caller passes the result to spawn once it has released
// the lock.
func (p *Pool) startLocked() (n int) {
	if may := p.limit - p.workers; may > 0 {
		n = max(0, min(may, p.queue.len(may+p.starting)-p.starting))
	}
	p.workers += n
	p.starting += n
	p.peak = max(p.peak, p.workers)
	p.watchLocked()
	return n
}

func (p *Pool) spawn(n int) {
	for range n {
		go p.start()
	}
}

// label gives the goroutine the pool's labels, in place of those of the goroutine that
// has started it, which belong to other work.
func (p *Pool) label() { pprof.SetGoroutineLabels(p.labels) }

// work is a worker's goroutine.
func (p *Pool) work() {
	p.label()
	p.mu.Lock()
	p.starting--
	b, f, ok := p.queue.take()
	if !ok {
		p.retireLocked()
		p.mu.Unlock()
		return
	}
	p.watchLocked()
	p.mu.Unlock()
	p.run(f, b)
}

// run runs f, then what is left of b, which the caller holds or is nil, and then what
// waits in the queue, until there is no more.
//
// The recover stands here, outside the loop, so that a callback pays nothing
// for it. A callback that panics, or calls runtime.Goexit (a test's FailNow),
// ends this goroutine, and another takes its place with the same count and
// the same batch: to everybody else nothing has happened.
func (p *Pool) run(f func(), b *batch) {
	ended := false
	defer func() {
		if ended {
			return
		}
		// Deferred in its turn: the handler may call runtime.Goexit too.
		defer func() {
			b := b // a copy, so that the worker's own stays off the heap
			go func() {
				p.label() // it has those that the callback has set
				p.run(func() {}, b)
			}()
		}()
		if v := recover(); v != nil {
			p.mu.Lock()
			p.panicked++
			p.mu.Unlock()
			p.handler(v, debug.Stack())
		}
	}()
	for ok := true; ok; {
		for f(); b != nil; f() {
			if p.yields.Load() {
				runtime.Gosched()
			}
			if f, ok = b.take(); !ok {
				break
			}
		}
		p.mu.Lock()
		if b != nil {
			p.queue.release(b)
		}
		if b, f, ok = p.queue.take(); !ok {
			p.retireLocked()
		}
		p.mu.Unlock()
	}
	ended = true
}

// retireLocked counts a worker out. It leaves submitters free to start a base
// of workers beside those that are still held up: while a thousand callbacks
// block, the next one starts its worker at once instead of waiting for the
// watchdog. As the blocked come back and end here, the limit falls to the base
// again.
func (p *Pool) retireLocked() {
	p.workers--
	p.limit = max(p.base, min(p.limit, p.workers+p.base))
	if p.closed && p.workers == 0 {
		p.queue = queue{}
		if p.done != nil {
			close(p.done)
			p.done = nil
		}
	}
}
