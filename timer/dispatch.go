package timer

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"sync"
	"sync/atomic" // whose Uint64 is aligned on 32-bit machines too

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/internal/latch"
	"github.com/tickless/tickless/internal/share"
)

// dispatch hands the callbacks of fired timers to the executor.
type dispatch struct {
	// Fixed by init.

	exec    executor.Executor
	batcher executor.Batcher // the executor, unless onPoller
	own     *executor.Pool   // the executor if the Scheduler made it, and ends it; else nil
	// onPanic is the handler of WithPanicHandler, or nil. If it is nil, the executor of
	// WithExecutor handles panics itself.
	onPanic func(v any, stack []byte)
	pool    share.Pool // the executor, if it is a pool to which callbacks go directly
	// panicked counts the panics that reached handlePanic.
	panicked atomic.Uint64
	// onPoller is true if the poller submits all callbacks, one by one in the order of
	// ticks. So an executor.Inline runs them on the poller. The callback of a timer that
	// is due when it is started waits in ready for the poller, and never runs inside
	// Start. onPoller is true with a given clock, and with an executor other than a Pool
	// or Goroutines of package executor. Otherwise the goroutine that finds a timer due
	// submits its callback.
	onPoller bool

	// dropped counts the callbacks that the executor refused.
	dropped atomic.Uint64
	// outstanding counts the unfinished callbacks on an executor of WithExecutor, and
	// those that an executor has refused. The Shutdown of our own executor waits for all
	// others.
	outstanding latch.Latch

	mu sync.Mutex
	// ready has the callbacks that wait for the poller.
	ready []func()
}

// init makes the executor, unless c has one.
func (d *dispatch) init(c *config) {
	d.onPanic = c.onPanic
	if c.executor == nil {
		d.own = d.newPool(c)
		d.exec = d.own
	} else {
		d.exec = c.executor
	}
	d.onPoller = true
	if c.clock != nil {
		return
	}
	switch e := d.exec.(type) { // exactly these types: a type that embeds one may behave differently
	case *executor.Pool:
		d.onPoller, d.batcher, d.pool = false, e, share.Of(e)
	case *executor.Goroutines:
		d.onPoller, d.batcher = false, e
	}
}

func (d *dispatch) newPool(c *config) *executor.Pool {
	opts := []executor.PoolOption{executor.WithPanicHandler(d.handlePanic)}
	if c.name != "" {
		opts = append(opts, executor.WithLabels(pprof.Labels("scheduler", c.name)))
	}
	return executor.NewPool(opts...)
}

// handlePanic counts a callback's panic, and calls the panic handler.
func (d *dispatch) handlePanic(v any, stack []byte) {
	d.panicked.Add(1)
	if d.onPanic != nil {
		d.onPanic(v, stack)
		return
	}
	fmt.Fprintf(os.Stderr, "timer: panic in a callback: %v\n\n%s\n", v, stack)
}

// submitDueLocked submits the callback of a timer that was due when it was started or
// reset. The caller holds the shard's lock, which Close needs too: so after Close the
// callback has been submitted.
func (d *dispatch) submitDueLocked(sh *shard, f func()) {
	if !d.onPoller {
		d.submit(f)
		return
	}
	d.mu.Lock()
	d.ready = append(d.ready, f)
	d.mu.Unlock()
	sh.wake = atOnce
}

// batch submits the callbacks of b.
func (d *dispatch) batch(b *batch) {
	accepted, _ := d.batcher.SubmitBatch(d.trackAll(b))
	d.refused(b.fs[accepted:]...)
	b.forget()
}

// share shares the callbacks of b with the pool, for the calling goroutine to run after
// it has stopped being the poller. Without a pool, share submits them.
func (d *dispatch) share(b *batch) share.Work {
	if d.pool == nil {
		d.batch(b)
		return share.Work{}
	}
	w, err := d.pool.Share(d.trackAll(b))
	if err != nil {
		d.refused(b.fs...)
	}
	b.forget()
	return w
}

// submit submits one callback to the executor.
func (d *dispatch) submit(f func()) {
	if d.exec.Submit(d.track(f)) != nil {
		d.refused(f)
	}
}

// trackAll tracks all callbacks of b.
func (d *dispatch) trackAll(b *batch) []func() {
	if d.own != nil {
		return b.fs
	}
	for _, f := range b.fs {
		b.wrapped = append(b.wrapped, d.track(f))
	}
	return b.wrapped
}

// track returns f in a wrapper that counts it as outstanding until it has ended, in
// whatever way, and passes a panic to the panic handler if there is one. For our own
// executor track returns f itself.
func (d *dispatch) track(f func()) func() {
	if d.own != nil {
		return f
	}
	d.outstanding.Add(1)
	return func() {
		defer d.outstanding.Add(-1)
		if d.onPanic != nil {
			defer d.catch()
		}
		f()
	}
}

// catch recovers a panic. It must be deferred directly: recover works only in a deferred
// function.
func (d *dispatch) catch() {
	if v := recover(); v != nil {
		d.handlePanic(v, debug.Stack())
	}
}

// refused counts callbacks that the executor has refused, and runs each on a goroutine of
// its own: the callback of a fired timer always runs.
func (d *dispatch) refused(fs ...func()) {
	d.dropped.Add(uint64(len(fs)))
	for _, f := range fs {
		if d.own != nil {
			d.outstanding.Add(1) // otherwise track has counted it
		}
		go func() {
			pprof.SetGoroutineLabels(context.Background()) // drops the labels of the goroutine that started a timer
			defer d.outstanding.Add(-1)
			d.runAlone(f)
		}()
	}
}

// runAlone runs a callback without the executor.
func (d *dispatch) runAlone(f func()) {
	defer d.catch()
	f()
}

// takeReady empties ready and returns its callbacks. It reuses the memory of into.
func (d *dispatch) takeReady(into []func()) []func() {
	d.mu.Lock()
	defer d.mu.Unlock()
	into = append(into[:0], d.ready...)
	d.ready = nil
	return into
}

func (d *dispatch) hasReady() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.ready) > 0
}

// A batch is a list of callbacks to be submitted. If one of them runs on the submitting
// goroutine and calls runtime.Goexit, the next goroutine continues after that callback.
type batch struct {
	fs   []func()
	done int
	// wrapped has the callbacks of fs in track's wrappers, if they have any.
	wrapped []func()
}

// forget empties the batch after all of it was submitted.
func (b *batch) forget() {
	clear(b.fs)
	clear(b.wrapped)
	b.fs, b.wrapped = b.fs[:0], b.wrapped[:0]
}

// each calls submit with every remaining callback, and empties the batch.
func (b *batch) each(submit func(func())) {
	for b.done < len(b.fs) {
		f := b.fs[b.done]
		b.fs[b.done] = nil
		b.done++
		submit(f)
	}
	b.fs, b.done = b.fs[:0], 0
	if cap(b.fs) > 2*shareSize { // grown beyond its usual size
		b.fs = nil
	}
}

// shutdown waits until all submitted callbacks have run.
func (d *dispatch) shutdown(ctx context.Context) error {
	if d.own != nil {
		if err := d.own.Shutdown(ctx); err != nil {
			return err
		}
	}
	return d.outstanding.Wait(ctx)
}

func (d *dispatch) stats(st *Stats) {
	st.Refused, st.Panicked = d.dropped.Load(), d.panicked.Load()
	if e, ok := d.exec.(interface{ Stats() executor.Stats }); ok {
		st.Executor = e.Stats()
	}
	d.mu.Lock()
	st.Queued = len(d.ready)
	d.mu.Unlock()
}
