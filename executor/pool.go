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
	labelCtx                context.Context // of the workers' goroutines
	workerFunc              func()          // p.runWorker as a value, so that a go statement allocates nothing

	// While mustYield is true, workers call runtime.Gosched between two callbacks of a
	// batch that has more than maxWithoutYield: see checkLocked.
	mustYield atomic.Bool

	mu sync.Mutex
	// Guarded by mu.
	queue           batchQueue
	submittedCount  uint64 // callbacks, as in Stats
	rejectedCount   uint64 // callbacks, as in Stats
	panicCount      uint64 // callbacks, as in Stats
	workerCount     int    // workers that have not ended
	peakWorkers     int    // the largest value of workerCount so far
	startingWorkers int    // workers that were started and have not begun to run
	workerLimit     int    // the number up to which workerCount may grow: see checkLocked and countEndedWorkerLocked
	watchdog        watchdog
	closed          bool
	done            chan struct{} // closed when the last worker ends; nil unless a Shutdown waits
}

var _ Batcher = (*Pool)(nil)

// NewPool returns a pool. The pool starts no goroutine until the first Submit.
func NewPool(opts ...PoolOption) *Pool {
	c := newConfig("NewPool", opts)
	p := &Pool{
		baseWorkers:  c.baseWorkers,
		maxWorkers:   c.maxWorkers,
		panicHandler: c.panicHandler,
		labelCtx:     cmp.Or(c.labelCtx, context.Background()),
		workerLimit:  c.baseWorkers,
	}
	p.workerFunc = p.runWorker
	p.watchdog.init(p.onWatchdogTimer)
	return p
}

// Submit hands f to the pool and returns nil, or returns [ErrClosed].
func (p *Pool) Submit(f func()) error {
	_, err := p.SubmitBatch([]func(){f})
	return err
}

// SubmitBatch hands fs to the pool, in order. It accepts all of fs. After Close it
// accepts none.
func (p *Pool) SubmitBatch(fs []func()) (accepted int, err error) {
	p.mustBeMade()
	p.mu.Lock()
	if p.closed {
		p.rejectedCount += uint64(len(fs))
		p.mu.Unlock()
		return 0, ErrClosed
	}
	p.queue.pushCallbacks(fs)
	p.submittedCount += uint64(len(fs))
	n := p.countNewWorkersLocked()
	p.mu.Unlock()
	p.spawnWorkers(n)
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
	if p.workerCount == 0 {
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
	if p.workerFunc == nil {
		panic("executor: a Pool that was not made by NewPool")
	}
}

// Stats returns the counts, all taken at the same moment.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	queued, running := p.queue.countWaiting(noLimit), p.workerCount-p.startingWorkers
	return Stats{
		Submitted:   p.submittedCount,
		Run:         p.submittedCount - uint64(queued+running),
		Panicked:    p.panicCount,
		Rejected:    p.rejectedCount,
		Queued:      queued,
		Running:     running,
		Workers:     p.workerCount,
		PeakWorkers: p.peakWorkers,
	}
}

// countNewWorkersLocked returns how many workers to start, and adds them to workerCount.
// It may set the watchdog's timer. The caller must unlock mu and then call
// spawnWorkers(n).
func (p *Pool) countNewWorkersLocked() (n int) {
	if allowed := p.workerLimit - p.workerCount; allowed > 0 {
		n = max(0, min(allowed, p.queue.countWaiting(allowed+p.startingWorkers)-p.startingWorkers))
	}
	p.workerCount += n
	p.startingWorkers += n
	p.peakWorkers = max(p.peakWorkers, p.workerCount)
	p.setWatchdogLocked()
	return n
}

func (p *Pool) spawnWorkers(n int) {
	for range n {
		go p.workerFunc()
	}
}

// setLabels sets the pool's labels on the calling goroutine. They replace inherited
// labels, which belong to the goroutine that started this one.
func (p *Pool) setLabels() { pprof.SetGoroutineLabels(p.labelCtx) }

// runWorker runs on the goroutine of each worker.
func (p *Pool) runWorker() {
	p.setLabels()
	p.mu.Lock()
	p.startingWorkers--
	b, f, ok := p.queue.takeCallback()
	if !ok {
		p.countEndedWorkerLocked()
		p.mu.Unlock()
		return
	}
	p.setWatchdogLocked()
	p.mu.Unlock()
	p.runCallbacks(f, b)
}

// runCallbacks runs f, then the callbacks of b, and then those of the queue, until none
// waits. The caller must hold b, unless b is nil.
//
// If a callback panics or calls runtime.Goexit, another goroutine continues with b and
// counts as the same worker.
func (p *Pool) runCallbacks(f func(), b *batch) {
	allRan := false
	// Recover outside the loop, so that a callback pays nothing for it.
	defer func() {
		if allRan {
			return
		}
		// Start the next goroutine in a deferred function, because the handler may also
		// call runtime.Goexit.
		defer func() {
			b := b // a copy, so that the worker's own variable stays off the heap
			go func() {
				p.setLabels() // replaces the labels that the callback has set
				p.runCallbacks(func() {}, b)
			}()
		}()
		if v := recover(); v != nil {
			p.mu.Lock()
			p.panicCount++
			p.mu.Unlock()
			p.panicHandler(v, debug.Stack())
		}
	}()
	for ok := true; ok; {
		for f(); b != nil; f() {
			if p.mustYield.Load() && b.n > maxWithoutYield {
				runtime.Gosched()
			}
			if f, ok = b.takeCallback(); !ok {
				break
			}
		}
		p.mu.Lock()
		if b != nil {
			p.queue.releaseBatch(b)
		}
		if b, f, ok = p.queue.takeCallback(); !ok {
			p.countEndedWorkerLocked()
		}
		p.mu.Unlock()
	}
	allRan = true
}

// countEndedWorkerLocked counts a worker as ended, and lowers workerLimit to baseWorkers
// above the number of remaining workers. So even if all of these block, the next callback
// gets a worker without the watchdog.
func (p *Pool) countEndedWorkerLocked() {
	p.workerCount--
	p.workerLimit = max(p.baseWorkers, min(p.workerLimit, p.workerCount+p.baseWorkers))
	if p.closed && p.workerCount == 0 {
		p.queue = batchQueue{}
		if p.done != nil {
			close(p.done)
			p.done = nil
		}
	}
}
