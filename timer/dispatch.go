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

// dispatch brings the callbacks of timers that fired to the executor.
type dispatch struct {
	// Fixed by init.

	exec    executor.Executor
	batcher executor.Batcher // the executor, unless onPoller
	own     *executor.Pool   // the executor if the Scheduler made it, and ends it; else nil
	// onPanic is the handler of WithPanicHandler, or nil. An executor that was given then
	// sees to the panics of what it runs.
	onPanic func(v any, stack []byte)
	pool    share.Pool // the executor, if it is a pool to which callbacks go directly
	// panicked counts the panics of callbacks that came here.
	panicked atomic.Uint64
	// onPoller: the poller submits all callbacks, one by one in the order of ticks. An inline
	// executor so runs them there. The callback of a timer that is due when it is started waits
	// in ready until the poller comes: it never runs inside Start. So it is under a clock
	// that is given, and with an executor that is not a Pool or a Goroutines of package
	// executor. Otherwise the goroutine that finds a timer due submits its callback.
	onPoller bool

	// dropped counts the callbacks that the executor refused.
	dropped atomic.Uint64
	// outstanding counts the callbacks that an executor which is not our own has
	// yet to finish, and those that it has refused. Of our own, its Shutdown knows.
	outstanding latch.Latch

	mu sync.Mutex
	// ready are callbacks that wait for the poller.
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
	switch e := d.exec.(type) { // its very type: what embeds one may do anything
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

// handlePanic counts a callback's panic, and gives it to the panic handler.
func (d *dispatch) handlePanic(v any, stack []byte) {
	d.panicked.Add(1)
	if d.onPanic != nil {
		d.onPanic(v, stack)
		return
	}
	fmt.Fprintf(os.Stderr, "timer: panic in a callback: %v\n\n%s\n", v, stack)
}

// submitDueLocked takes the callback of a timer that was due when it was started or
// reset, with its shard's lock held: Close, which takes every shard's lock, thus
// finds the callback handed over.
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

// batch takes the callbacks of b, which were found due.
func (d *dispatch) batch(b *batch) {
	accepted, _ := d.batcher.SubmitBatch(d.trackAll(b))
	d.refused(b.fs[accepted:]...)
	b.forget()
}

// share takes the callbacks of b, which the goroutine that is the poller now will run
// itself, if the executor is a pool.
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

// submit hands one callback to the executor.
func (d *dispatch) submit(f func()) {
	if d.exec.Submit(d.track(f)) != nil {
		d.refused(f)
	}
}

// trackAll is track for all of b.
func (d *dispatch) trackAll(b *batch) []func() {
	if d.own != nil {
		return b.fs
	}
	for _, f := range b.fs {
		b.wrapped = append(b.wrapped, d.track(f))
	}
	return b.wrapped
}

// track counts a callback as outstanding until it has finished, however it ends, and
// has the panic handler, if there is one, get its panic.
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

// catch is for a defer statement alone, since recover only works there.
func (d *dispatch) catch() {
	if v := recover(); v != nil {
		d.handlePanic(v, debug.Stack())
	}
}

// refused counts callbacks that the executor has not accepted, and runs each on a
// goroutine of its own: what has fired always runs.
func (d *dispatch) refused(fs ...func()) {
	d.dropped.Add(uint64(len(fs)))
	for _, f := range fs {
		if d.own != nil {
			d.outstanding.Add(1) // else track has counted it
		}
		go func() {
			pprof.SetGoroutineLabels(context.Background()) // not those of who has started a timer
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

// takeReady returns what waits in ready, in into's memory if it is large enough.
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

// A batch is callbacks to be handed over one by one, by a goroutine that may end
// in the middle, if a callback runs on it and calls runtime.Goexit. The next
// goroutine goes on where it stopped.
type batch struct {
	fs   []func()
	done int
	// wrapped are fs as the executor gets them, if that differs.
	wrapped []func()
}

// forget empties the batch, all of which was handed over.
func (b *batch) forget() {
	clear(b.fs)
	clear(b.wrapped)
	b.fs, b.wrapped = b.fs[:0], b.wrapped[:0]
}

// each calls submit with every callback that is left, and forgets them all.
func (b *batch) each(submit func(func())) {
	for b.done < len(b.fs) {
		f := b.fs[b.done]
		b.fs[b.done] = nil
		b.done++
		submit(f)
	}
	b.fs, b.done = b.fs[:0], 0
	if cap(b.fs) > 2*shareSize { // more than there is room for anyway
		b.fs = nil
	}
}

// shutdown waits until everything handed over has run.
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
