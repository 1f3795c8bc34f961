package timer

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"sync"
	"sync/atomic" // here and in the whole package: go.uber.org/atomic does not align its Uint64 on 32-bit machines
	"time"

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
	onPanic    func(v any, stack []byte)
	sharePool  share.Pool // the executor, if it is a Pool that shareBatch may use; else nil
	panicCount atomic.Uint64
	// onlyPollerSubmits is true if the poller submits all callbacks, in the order of
	// ticks. If it is false, Start and Reset submit the callbacks of timers that are
	// already due.
	onlyPollerSubmits bool

	refusedCount atomic.Uint64
	// unfinishedCallbacks counts the unfinished callbacks that run outside ownPool.
	// ownPool.Shutdown waits for the callbacks inside.
	unfinishedCallbacks latch.Latch

	mu sync.Mutex
	// readyCallbacks lists the callbacks that wait for the poller to submit them.
	readyCallbacks []func()
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
		d.onlyPollerSubmits, d.batcher, d.sharePool = false, e, share.PoolOf(e)
	case *executor.Goroutines:
		d.onlyPollerSubmits, d.batcher = false, e
	}
	if d.batcher != nil {
		d.batcher.SubmitBatch(nil) // panics if the executor is nil or zero: later, that would be under a lock
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
	d.panicCount.Add(1)
	if d.onPanic != nil {
		d.onPanic(v, stack)
		return
	}
	fmt.Fprintf(os.Stderr, "timer: panic in a callback: %v\n\n%s\n", v, stack)
}

// submitOrQueueLocked submits the callback of a timer that is already due when it is
// started or reset. If only the poller submits callbacks, it adds f to readyCallbacks
// instead: so f never runs inside Start.
func (d *dispatcher) submitOrQueueLocked(sh *shard, f func()) {
	if !d.onlyPollerSubmits {
		d.submit(f)
		return
	}
	d.mu.Lock()
	d.readyCallbacks = append(d.readyCallbacks, f)
	d.mu.Unlock()
	sh.wakeAt = atOnce
}

// submitBatch submits the callbacks of b to the executor.
func (d *dispatcher) submitBatch(b *callbackBatch) {
	accepted, _ := d.batcher.SubmitBatch(d.wrapBatch(b))
	d.runRefusedCallbacks(b.callbacks[accepted:]...)
	b.reset()
}

// shareBatch gives the callbacks of b to the pool. When the poller is asleep, the caller
// must call Run on the result. nextCall is as in share.Pool. Without a pool, shareBatch
// submits the callbacks to the executor, and the result is empty.
func (d *dispatcher) shareBatch(b *callbackBatch, nextCall time.Duration) (w share.Work) {
	if d.sharePool == nil {
		if len(b.callbacks) > 0 {
			d.submitBatch(b)
		}
		return w
	}
	w, err := d.sharePool.Share(d.wrapBatch(b), nextCall)
	if err != nil {
		d.runRefusedCallbacks(b.callbacks...)
	}
	b.reset()
	return w
}

// announceNoCall tells the pool that shareBatch may never be called again.
func (d *dispatcher) announceNoCall() {
	if d.sharePool != nil {
		d.sharePool.Share(nil, never)
	}
}

func (d *dispatcher) submit(f func()) {
	if d.executor.Submit(d.wrap(f)) != nil {
		d.runRefusedCallbacks(f)
	}
}

func (d *dispatcher) wrapBatch(b *callbackBatch) []func() {
	if d.ownPool != nil {
		return b.callbacks
	}
	for _, f := range b.callbacks {
		b.wrappedCallbacks = append(b.wrappedCallbacks, d.wrap(f))
	}
	return b.wrappedCallbacks
}

// wrap returns a function that calls f and counts it as unfinished until it ends. A panic
// goes to the panic handler, if there is one. An ownPool does all this itself: then wrap
// returns f.
func (d *dispatcher) wrap(f func()) func() {
	if d.ownPool != nil {
		return f
	}
	d.unfinishedCallbacks.Add(1)
	return func() {
		defer d.unfinishedCallbacks.Add(-1)
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

// runRefusedCallbacks counts callbacks that the executor has refused, and runs each on a
// new goroutine: the callback of a fired timer always runs.
func (d *dispatcher) runRefusedCallbacks(fs ...func()) {
	d.refusedCount.Add(uint64(len(fs)))
	for _, f := range fs {
		if d.ownPool != nil {
			d.unfinishedCallbacks.Add(1) // without ownPool, wrap has counted f
		}
		go func() {
			pprof.SetGoroutineLabels(context.Background()) // drops the labels of the goroutine that started a timer
			defer d.unfinishedCallbacks.Add(-1)
			d.runWithoutExecutor(f)
		}()
	}
}

// runWithoutExecutor runs a callback on the calling goroutine, without the executor.
func (d *dispatcher) runWithoutExecutor(f func()) {
	defer d.recoverPanic()
	f()
}

// takeReadyCallbacks empties readyCallbacks, and returns the callbacks in the memory of
// buf.
func (d *dispatcher) takeReadyCallbacks(buf []func()) []func() {
	d.mu.Lock()
	defer d.mu.Unlock()
	buf = append(buf[:0], d.readyCallbacks...)
	d.readyCallbacks = nil
	return buf
}

func (d *dispatcher) hasReadyCallbacks() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.readyCallbacks) > 0
}

// A callbackBatch is a list of callbacks to submit.
type callbackBatch struct {
	callbacks    []func()
	numSubmitted int // if a callback ends the goroutine, another one goes on from here
	// wrappedCallbacks holds what wrap has returned for each of the callbacks.
	wrappedCallbacks []func()
}

// reset empties the batch after all of it was submitted.
func (b *callbackBatch) reset() {
	clear(b.callbacks)
	clear(b.wrappedCallbacks)
	b.callbacks, b.wrappedCallbacks = b.callbacks[:0], b.wrappedCallbacks[:0]
}

// submitAll calls submit with every callback that is not yet submitted, and empties the
// batch.
func (b *callbackBatch) submitAll(submit func(func())) {
	for b.numSubmitted < len(b.callbacks) {
		f := b.callbacks[b.numSubmitted]
		b.callbacks[b.numSubmitted] = nil
		b.numSubmitted++
		submit(f)
	}
	b.callbacks, b.numSubmitted = b.callbacks[:0], 0
	if cap(b.callbacks) > 2*submitSize { // grown beyond its usual size
		b.callbacks = nil
	}
}

// shutdown waits until all submitted callbacks have returned.
func (d *dispatcher) shutdown(ctx context.Context) error {
	if d.ownPool != nil {
		if err := d.ownPool.Shutdown(ctx); err != nil {
			return err
		}
	}
	return d.unfinishedCallbacks.Wait(ctx)
}

func (d *dispatcher) fillStats(st *Stats) {
	st.Refused, st.Panicked = d.refusedCount.Load(), d.panicCount.Load()
	if e, ok := d.executor.(interface{ Stats() executor.Stats }); ok {
		st.Executor = e.Stats()
	}
	d.mu.Lock()
	st.Queued = len(d.readyCallbacks)
	d.mu.Unlock()
}
