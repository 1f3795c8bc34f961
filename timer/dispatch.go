package timer

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"sync"
	"sync/atomic" // its Uint64 is aligned on 32-bit machines too

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/internal/latch"
	"github.com/tickless/tickless/internal/share"
)

// dispatcher hands the callbacks of fired timers to the executor.
type dispatcher struct {
	// Fixed by init.

	executor executor.Executor
	batcher  executor.Batcher // the executor, unless onlyPollerSubmits
	ownPool  *executor.Pool   // the executor, if the Scheduler made it; else nil
	// onPanic is the handler of WithPanicHandler. If it is nil, an executor of
	// WithExecutor handles panics itself.
	onPanic  func(v any, stack []byte)
	pool     share.Pool // the executor, if it is a Pool that shareBatch may use; else nil
	panicked atomic.Uint64
	// onlyPollerSubmits is true if the poller submits all callbacks, in the order of
	// ticks. If it is false, Start and Reset submit the callbacks of timers that are
	// already due.
	onlyPollerSubmits bool

	refusedCount atomic.Uint64
	// outstanding counts the unfinished callbacks that run outside ownPool.
	// ownPool.Shutdown waits for all others.
	outstanding latch.Latch

	mu sync.Mutex
	// ready lists the callbacks that wait for the poller to submit them.
	ready []func()
}

// init sets the executor: the one in c, or a new pool.
func (d *dispatcher) init(c *config) {
	d.onPanic = c.onPanic
	if c.executor == nil {
		d.ownPool = d.newPool(c)
		d.executor = d.ownPool
	} else {
		d.executor = c.executor
	}
	d.onlyPollerSubmits = true
	if c.clock != nil {
		return
	}
	switch e := d.executor.(type) { // exactly these types: a type that embeds one may behave differently
	case *executor.Pool:
		d.onlyPollerSubmits, d.batcher, d.pool = false, e, share.PoolOf(e)
	case *executor.Goroutines:
		d.onlyPollerSubmits, d.batcher = false, e
	}
}

func (d *dispatcher) newPool(c *config) *executor.Pool {
	opts := []executor.PoolOption{executor.WithPanicHandler(d.handlePanic)}
	if c.name != "" {
		opts = append(opts, executor.WithLabels(pprof.Labels("scheduler", c.name)))
	}
	return executor.NewPool(opts...)
}

// handlePanic counts a callback's panic, and calls the panic handler.
func (d *dispatcher) handlePanic(v any, stack []byte) {
	d.panicked.Add(1)
	if d.onPanic != nil {
		d.onPanic(v, stack)
		return
	}
	fmt.Fprintf(os.Stderr, "timer: panic in a callback: %v\n\n%s\n", v, stack)
}

// submitDueLocked submits the callback of a timer that is already due when it is started
// or reset. If only the poller submits callbacks, it adds f to ready instead: so f never
// runs inside Start.
func (d *dispatcher) submitDueLocked(sh *shard, f func()) {
	if !d.onlyPollerSubmits {
		d.submit(f)
		return
	}
	d.mu.Lock()
	d.ready = append(d.ready, f)
	d.mu.Unlock()
	sh.wakeAt = atOnce
}

// submitBatch submits the callbacks of b to the executor.
func (d *dispatcher) submitBatch(b *batch) {
	accepted, _ := d.batcher.SubmitBatch(d.wrapAll(b))
	d.runRefused(b.fs[accepted:]...)
	b.reset()
}

// shareBatch gives the callbacks of b to the pool. When the poller is asleep, the caller
// must call Run on the result. Without a pool, shareBatch submits the callbacks to the
// executor, and the result is empty.
func (d *dispatcher) shareBatch(b *batch) share.Work {
	if d.pool == nil {
		d.submitBatch(b)
		return share.Work{}
	}
	w, err := d.pool.Share(d.wrapAll(b))
	if err != nil {
		d.runRefused(b.fs...)
	}
	b.reset()
	return w
}

func (d *dispatcher) submit(f func()) {
	if d.executor.Submit(d.wrap(f)) != nil {
		d.runRefused(f)
	}
}

func (d *dispatcher) wrapAll(b *batch) []func() {
	if d.ownPool != nil {
		return b.fs
	}
	for _, f := range b.fs {
		b.wrapped = append(b.wrapped, d.wrap(f))
	}
	return b.wrapped
}

// wrap returns a function that calls f and counts it as outstanding until it ends. A
// panic goes to the panic handler, if there is one. An ownPool does all this itself: then
// wrap returns f.
func (d *dispatcher) wrap(f func()) func() {
	if d.ownPool != nil {
		return f
	}
	d.outstanding.Add(1)
	return func() {
		defer d.outstanding.Add(-1)
		if d.onPanic != nil {
			defer d.recoverPanic()
		}
		f()
	}
}

// recoverPanic recovers a panic. Defer it directly: recover works only in the deferred
// function itself.
func (d *dispatcher) recoverPanic() {
	if v := recover(); v != nil {
		d.handlePanic(v, debug.Stack())
	}
}

// runRefused counts callbacks that the executor has refused, and runs each on a new
// goroutine: the callback of a fired timer always runs.
func (d *dispatcher) runRefused(fs ...func()) {
	d.refusedCount.Add(uint64(len(fs)))
	for _, f := range fs {
		if d.ownPool != nil {
			d.outstanding.Add(1) // without ownPool, wrap has counted f
		}
		go func() {
			pprof.SetGoroutineLabels(context.Background()) // drops the labels of the goroutine that started a timer
			defer d.outstanding.Add(-1)
			d.runAlone(f)
		}()
	}
}

// runAlone runs a callback on the calling goroutine, without the executor.
func (d *dispatcher) runAlone(f func()) {
	defer d.recoverPanic()
	f()
}

// takeReady removes the callbacks from ready and returns them, in the memory of the slice
// into.
func (d *dispatcher) takeReady(into []func()) []func() {
	d.mu.Lock()
	defer d.mu.Unlock()
	into = append(into[:0], d.ready...)
	d.ready = nil
	return into
}

func (d *dispatcher) hasReady() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.ready) > 0
}

// A batch is a list of callbacks to submit.
type batch struct {
	fs           []func()
	numSubmitted int // if a callback ends the goroutine, another one goes on from here
	// wrapped holds what wrap has returned for the callbacks in fs.
	wrapped []func()
}

// reset empties the batch after all of it was submitted.
func (b *batch) reset() {
	clear(b.fs)
	clear(b.wrapped)
	b.fs, b.wrapped = b.fs[:0], b.wrapped[:0]
}

// submitEach calls submit with every callback that is not yet submitted, and empties the
// batch.
func (b *batch) submitEach(submit func(func())) {
	for b.numSubmitted < len(b.fs) {
		f := b.fs[b.numSubmitted]
		b.fs[b.numSubmitted] = nil
		b.numSubmitted++
		submit(f)
	}
	b.fs, b.numSubmitted = b.fs[:0], 0
	if cap(b.fs) > 2*submitSize { // grown beyond its usual size
		b.fs = nil
	}
}

// shutdown waits until all submitted callbacks have returned.
func (d *dispatcher) shutdown(ctx context.Context) error {
	if d.ownPool != nil {
		if err := d.ownPool.Shutdown(ctx); err != nil {
			return err
		}
	}
	return d.outstanding.Wait(ctx)
}

func (d *dispatcher) stats(st *Stats) {
	st.Refused, st.Panicked = d.refusedCount.Load(), d.panicked.Load()
	if e, ok := d.executor.(interface{ Stats() executor.Stats }); ok {
		st.Executor = e.Stats()
	}
	d.mu.Lock()
	st.Queued = len(d.ready)
	d.mu.Unlock()
}
