package timer

import (
	"context"
	"fmt"
	"runtime/debug"
	"runtime/pprof"
	"runtime/trace"
	"sync"
	"time"

	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/internal/callback"
	"github.com/tickless/tickless/internal/latch"
	"go.uber.org/atomic"
)

// handOver brings the callbacks of timers that fired to the executor.
type handOver struct {
	// Fixed by init.

	exec    executor.Executor
	batcher executor.Batcher // the executor if it is one, else nil
	own     ownExecutor      // the executor if the Scheduler made it, and ends it; else nil
	// onPanic gets the panics of callbacks, if the executor is not our own; nil: it
	// sees to them.
	onPanic func(v any, stack []byte)
	pool    *executor.Pool // the executor, if callbacks go to it directly
	// times measures callbacks; nil if nobody asked for it. name is the Scheduler's.
	times *callbackTimes
	name  string
	// panics are the latest ones, of which panicked is the number.
	panics   latest[Panic]
	panicked *atomic.Uint64
	// inline: it is an *executor.Inline.
	inline bool
	way    way

	// dropped counts the callbacks that the executor refused. Allocated alone, it
	// is aligned on 32-bit machines too.
	dropped *atomic.Uint64
	// jobs are the Jobs that are not over, by what they submit: whoever is
	// refused a Job's callback tells it.
	jobs sync.Map // payload of the callback: *Job
	// outstanding counts the callbacks that an executor which is not our own has
	// yet to finish. Of our own, its Shutdown knows.
	outstanding latch.Latch
	// drops are the callbacks that the executor refused, for the handler.
	drops drops
	// dispatcher is held while the dispatcher lives.
	dispatcher latch.Latch

	mu sync.Mutex
	// ready are callbacks that wait for the poller or the dispatcher.
	ready       []func()
	dispatching bool
	backlog     backlog

	// wrapped is the poller's, for batch.
	wrapped []func()
}

// ownExecutor is an executor that the Scheduler has made.
type ownExecutor interface {
	executor.Batcher
	Shutdown(ctx context.Context) error
}

// way is how callbacks come to the executor.
type way int

const (
	// direct: the executor never blocks its submitter and never runs a callback
	// on it. Whoever finds a timer due submits its callback.
	direct way = iota
	// onPoller: the poller submits, and an inline executor so runs, all
	// callbacks. That of a timer which was due when it was started waits in
	// ready until the poller comes: it never runs inside Start.
	onPoller
	// dispatched: the executor may block. All callbacks go through ready to a
	// dispatcher, a goroutine that lives while there are any.
	dispatched
)

// init makes the executor, unless c has one. onLook is called by its watchdog.
func (h *handOver) init(c *config, onLook func()) {
	h.drops.handler = c.onDrop
	h.dropped, h.panicked = atomic.NewUint64(0), atomic.NewUint64(0)
	h.name = c.name
	if c.executor == nil {
		h.own = h.newExecutor(c, onLook)
		h.exec = h.own
	} else {
		h.exec, h.onPanic = c.executor, c.onPanic
	}
	h.batcher, _ = h.exec.(executor.Batcher)
	_, h.inline = h.exec.(*executor.Inline)
	switch {
	case h.inline || c.clock != nil:
		h.way = onPoller
	case neverBlocks(h.exec):
		h.way = direct
		h.pool, _ = h.exec.(*executor.Pool)
	default:
		h.way = dispatched
	}
}

func (h *handOver) newExecutor(c *config, onLook func()) ownExecutor {
	onPanic := c.onPanic
	if onPanic == nil {
		onPanic = callback.PrintPanic
	}
	handler := []executor.Option{executor.WithPanicHandler(func(v any, stack []byte) {
		h.notePanic(v, stack)
		onPanic(v, stack)
	})}
	if c.clock != nil {
		return executor.NewInline(handler...)
	}
	var opts []executor.PoolOption
	for _, o := range handler {
		opts = append(opts, o)
	}
	if c.name != "" {
		opts = append(opts, executor.WithLabels(pprof.Labels("scheduler", c.name)))
	}
	pool := executor.NewPool(opts...)
	callback.OnLook(pool, onLook)
	return pool
}

// neverBlocks tells the executors to which callbacks may be submitted with a lock
// held. It goes by their very types: one that embeds a Pool has its methods too,
// but may do anything in the one that it overrides.
func neverBlocks(e executor.Executor) bool {
	switch e := e.(type) {
	case *executor.Pool:
		return !e.MayBlock()
	case *executor.Goroutines:
		return !e.MayBlock()
	}
	return false
}

// soonLocked takes the callback of a timer that was due when it was started or
// reset, with its shard's lock held: Close, which takes every shard's lock, thus
// finds the callback handed over.
func (h *handOver) soonLocked(sh *shard, f func()) {
	switch h.way {
	case direct:
		h.submit(f)
	case onPoller:
		h.mu.Lock()
		h.ready = append(h.ready, f)
		h.mu.Unlock()
		sh.wake = 0
	case dispatched:
		h.keepLocked(1, 0)
		h.dispatch(f)
	}
}

// batch takes the callbacks that the poller found due, unless the poller is to
// run them itself. fs is the caller's again on return.
func (h *handOver) batch(fs []func()) {
	if h.way == dispatched {
		h.dispatch(fs...)
		return
	}
	if h.batcher == nil {
		for _, f := range fs {
			h.submit(f)
		}
		return
	}
	accepted, err := h.batcher.SubmitBatch(h.watchAll(fs))
	clear(h.wrapped)
	h.wrapped = h.wrapped[:0]
	h.refused(err, fs[accepted:]...)
}

// share takes callbacks that the poller found due and that the goroutine which is
// the poller now will run itself, if the executor is a pool. fs is the caller's
// again on return.
func (h *handOver) share(fs []func()) executor.Share {
	if h.pool == nil {
		h.batch(fs)
		return executor.Share{}
	}
	s, accepted, err := h.pool.Share(h.watchAll(fs))
	clear(h.wrapped)
	h.wrapped = h.wrapped[:0]
	h.refused(err, fs[accepted:]...)
	return s
}

// submit hands one callback to the executor.
func (h *handOver) submit(f func()) {
	if err := h.exec.Submit(h.watch(f)); err != nil {
		h.refused(err, f)
	}
}

// watchAll is watch for many. What it returns is the poller's.
func (h *handOver) watchAll(fs []func()) []func() {
	if h.own != nil && h.times == nil && !trace.IsEnabled() {
		return fs
	}
	for _, f := range fs {
		h.wrapped = append(h.wrapped, h.watch(f))
	}
	return h.wrapped
}

// watch counts a callback as outstanding until it has finished, however it ends, and
// has the panic handler, if there is one, get its panic.
func (h *handOver) watch(f func()) func() {
	if h.times != nil {
		f = h.times.measured(f)
	}
	if trace.IsEnabled() {
		f = traced(f, h.name)
	}
	if h.own != nil {
		return f
	}
	h.outstanding.Add(1)
	return func() {
		defer h.outstanding.Add(-1)
		if h.onPanic != nil {
			defer h.catch()
		}
		f()
	}
}

// catch is for a defer statement alone, since recover only works there.
func (h *handOver) catch() {
	if v := recover(); v != nil {
		stack := debug.Stack()
		h.notePanic(v, stack)
		h.onPanic(v, stack)
	}
}

// notePanic keeps a callback's panic for Recent.
func (h *handOver) notePanic(v any, stack []byte) {
	h.panicked.Inc()
	h.panics.add(Panic{When: time.Now(), Value: fmt.Sprint(v), Stack: string(stack)})
}

// refused counts callbacks that the executor has not accepted, and tells the Jobs
// that they are of, and the handler of WithDropHandler.
func (h *handOver) refused(err error, fs ...func()) {
	if len(fs) == 0 {
		return
	}
	h.dropped.Add(uint64(len(fs)))
	if h.own == nil {
		h.outstanding.Add(-len(fs))
	}
	for _, f := range fs {
		if j, ok := h.jobs.Load(funcPayload(f)); ok {
			j.(*Job).refused.Store(true)
			f = j.(*Job).f
		}
		h.drops.add(f, err)
	}
}

// takeReady returns what waits in ready, in into's memory if it is large enough.
func (h *handOver) takeReady(into []func()) []func() {
	h.mu.Lock()
	defer h.mu.Unlock()
	into = append(into[:0], h.ready...)
	clear(h.ready)
	h.ready = h.ready[:0]
	if cap(h.ready) > 2*batchSize {
		h.ready = nil // grown by a burst
	}
	return into
}

func (h *handOver) hasReady() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.ready) > 0
}

func (h *handOver) dispatch(fs ...func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ready = append(h.ready, fs...)
	if !h.dispatching {
		h.dispatching = true
		h.dispatcher.Add(1)
		go h.runDispatcher(new(line))
	}
}

// runDispatcher hands over what is in ready until there is nothing, but first
// what is left of left.
func (h *handOver) runDispatcher(left *line) {
	over := false
	defer func() {
		if !over {
			// A callback that ran on this goroutine, as an executor may have it,
			// has ended it with runtime.Goexit. Another takes over.
			go h.runDispatcher(left)
			return
		}
		h.dispatcher.Add(-1)
	}()
	for {
		left.each(h.submitWaiting)
		h.mu.Lock()
		if len(h.ready) == 0 {
			// Under the lock that dispatch adds under: nothing is added
			// unseen between this look and the end.
			h.dispatching = false
			h.mu.Unlock()
			over = true
			return
		}
		left.fs, h.ready = h.ready, nil
		h.mu.Unlock()
	}
}

// A line is callbacks to be handed over one by one, by a goroutine that may end
// in the middle, if a callback runs on it and calls runtime.Goexit. The next
// goroutine goes on where it stopped.
type line struct {
	fs   []func()
	done int
}

// each calls submit with every callback that is left, and forgets them all.
func (l *line) each(submit func(func())) {
	for l.done < len(l.fs) {
		f := l.fs[l.done]
		l.fs[l.done] = nil
		l.done++
		submit(f)
	}
	l.fs, l.done = l.fs[:0], 0
	if cap(l.fs) > 2*batchSize {
		l.fs = nil // grown by a burst
	}
}

// shutdown waits until everything handed over has run.
func (h *handOver) shutdown(ctx context.Context) error {
	if err := h.dispatcher.Wait(ctx); err != nil {
		return err
	}
	wait := h.outstanding.Wait
	if h.own != nil {
		wait = h.own.Shutdown
	}
	if err := wait(ctx); err != nil {
		return err
	}
	return h.drops.telling.Wait(ctx)
}

func (h *handOver) stats(st *Stats) {
	st.Dropped, st.Panicked = h.dropped.Load(), h.panicked.Load()
	if e, ok := h.exec.(interface{ Stats() executor.Stats }); ok {
		st.Executor = e.Stats()
	}
	st.Callbacks = h.times.read()
	h.mu.Lock()
	st.Queued = len(h.ready)
	if h.way == dispatched {
		st.Queued = h.backlog.waiting
	}
	h.mu.Unlock()
}
