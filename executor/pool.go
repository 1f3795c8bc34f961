package executor

import (
	"cmp"
	"context"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"sync"

	"go.uber.org/atomic"

	"github.com/tickless/tickless/internal/latch"
)

// A Pool runs short callbacks on few goroutines, and adds goroutines when callbacks
// block. Make a Pool with [NewPool].
//
// A worker is a goroutine that runs one callback after another, and ends when no callback
// waits. As callbacks come in, a Pool starts workers up to its base ([WithWorkers]). If
// callbacks take long, it soon starts a worker for each callback that waits, up to
// [WithMaxWorkers].
//
// A Pool that is made outside a testing/synctest bubble must not be used inside.
type Pool struct {
	baseWorkers, maxWorkers int
	panicHandler            func(v any, stack []byte)
	labels                  context.Context // of the workers' goroutines
	start                   func()          // p.work as a value, so that a go statement allocates nothing

	// While mustYield is true, workers call runtime.Gosched between two callbacks of a
	// batch that has more than fewCallbacks: see check.
	mustYield atomic.Bool

	mu sync.Mutex
	// Guarded by mu.
	queue       queue
	submitted   uint64 // callbacks, as in Stats
	rejected    uint64 // callbacks, as in Stats
	panicked    uint64 // callbacks, as in Stats
	workers     int    // workers that have not ended
	peakWorkers int    // the largest value of workers so far
	starting    int    // workers that were started and have not begun to run
	workerLimit int    // workers may grow up to workerLimit: see check and workerEndedLocked
	watchdog    watchdog
	closed      bool
	done        chan struct{} // closed when the last worker ends; nil unless a Shutdown waits
}

var _ Batcher = (*Pool)(nil)

// NewPool returns a pool. The pool starts no goroutine until the first Submit.
func NewPool(opts ...PoolOption) *Pool {
	c := newConfig("NewPool", opts)
	p := &Pool{
		baseWorkers:  c.workers,
		maxWorkers:   c.maxWorkers,
		panicHandler: c.panicHandler,
		labels:       cmp.Or(c.labels, context.Background()),
		workerLimit:  c.workers,
	}
	p.start = p.work
	p.watchdog.init(p.check)
	return p
}

// Submit hands f to the pool and returns nil, or returns [ErrClosed].
func (p *Pool) Submit(f func()) error {
	_, err := p.SubmitBatch([]func(){f})
	return err
}

// SubmitBatch hands fs to the pool, in order. It accepts all of fs. After Close it accepts
// none.
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
	n := p.addWorkersLocked()
	p.mu.Unlock()
	p.spawn(n)
	return len(fs), nil
}

// Close refuses new callbacks and returns nil. It does not wait: accepted callbacks still
// run.
func (p *Pool) Close() error {
	p.mustBeMade()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return nil
}

// Shutdown refuses new callbacks and waits for every accepted one to end. If ctx ends
// first, Shutdown returns ctx.Err(), and the callbacks still run. A callback that calls
// Shutdown waits for itself, until ctx ends.
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
	return latch.Await(ctx, done)
}

// mustBeMade panics unless NewPool has made p.
func (p *Pool) mustBeMade() {
	if p.start == nil {
		panic("executor: a Pool that was not made by NewPool")
	}
}

// Stats returns the counts, all taken at the same moment.
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
		PeakWorkers: p.peakWorkers,
	}
}

// addWorkersLocked decides how many workers to start, and counts them. It may set the
// watchdog's timer. The caller must unlock mu and then call spawn(n).
func (p *Pool) addWorkersLocked() (n int) {
	if allowed := p.workerLimit - p.workers; allowed > 0 {
		n = max(0, min(allowed, p.queue.len(allowed+p.starting)-p.starting))
	}
	p.workers += n
	p.starting += n
	p.peakWorkers = max(p.peakWorkers, p.workers)
	p.watchLocked()
	return n
}

func (p *Pool) spawn(n int) {
	for range n {
		go p.start()
	}
}

// setLabels sets the pool's labels on the calling goroutine. They replace inherited
// labels, which belong to the goroutine that started this one.
func (p *Pool) setLabels() { pprof.SetGoroutineLabels(p.labels) }

// work runs on the goroutine of each worker.
func (p *Pool) work() {
	p.setLabels()
	p.mu.Lock()
	p.starting--
	b, f, ok := p.queue.take()
	if !ok {
		p.workerEndedLocked()
		p.mu.Unlock()
		return
	}
	p.watchLocked()
	p.mu.Unlock()
	p.run(f, b)
}

// run runs f, then the callbacks of b, and then those of the queue, until none waits. The
// caller must hold b, unless b is nil.
//
// If a callback panics or calls runtime.Goexit, another goroutine continues with b and
// counts as the same worker.
func (p *Pool) run(f func(), b *batch) {
	finished := false
	// Recover outside the loop, so that a callback pays nothing for it.
	defer func() {
		if finished {
			return
		}
		// Start the next goroutine in a deferred function, because the handler may also
		// call runtime.Goexit.
		defer func() {
			b := b // a copy, so that the worker's own variable stays off the heap
			go func() {
				p.setLabels() // replaces the labels that the callback has set
				p.run(func() {}, b)
			}()
		}()
		if v := recover(); v != nil {
			p.mu.Lock()
			p.panicked++
			p.mu.Unlock()
			p.panicHandler(v, debug.Stack())
		}
	}()
	for ok := true; ok; {
		for f(); b != nil; f() {
			if p.mustYield.Load() && b.n > fewCallbacks {
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
			p.workerEndedLocked()
		}
		p.mu.Unlock()
	}
	finished = true
}

// workerEndedLocked counts a worker as ended, and lowers workerLimit to baseWorkers above
// the number of remaining workers. So even if all of these block, the next callback gets
// a worker without the watchdog.
func (p *Pool) workerEndedLocked() {
	p.workers--
	p.workerLimit = max(p.baseWorkers, min(p.workerLimit, p.workers+p.baseWorkers))
	if p.closed && p.workers == 0 {
		p.queue = queue{}
		if p.done != nil {
			close(p.done)
			p.done = nil
		}
	}
}
