package durable

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime/pprof"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/durable/internal/places"
	"github.com/tickless/tickless/durable/internal/worker"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/executor"
	"github.com/tickless/tickless/timer"
)

// A Worker claims due tasks and runs their handlers. Register handlers with Handle,
// then call Run. Any number of Workers, also in other processes, may share a store.
type Worker struct {
	client *Client
	config workerConfig
	// clock is the store's own clock if it has one, such as a virtual clock, or the
	// system's.
	clock           clock.Clock
	hasVirtualClock bool // clock is not the system's

	// Set before the first Run.

	handlers     map[string]*handler
	handlerNames []string

	// Set by each Run.

	run            *worker.Run
	timers         *timer.Scheduler
	deadHooks      *sync.WaitGroup // running dead hooks
	handlerCtx     context.Context // parent of the handlers' contexts
	commandCtx     context.Context // of commands to the store
	pausedHandlers []string        // the Worker's handlers that are paused; owned by the Loop of shard 0

	places atomic.Pointer[places.Pool] // nil before the first Run

	mu         sync.Mutex // guards the fields of this block
	runCalled  bool       // Run was called
	closed     bool       // Shutdown or Close was called
	currentRun *currentRun
	recentDead []RecentDead

	counters      counters[WorkerStats] // without what loopCounters and places have
	loopCounters  worker.Counters
	otherCounters counters[HandlerStats] // of tasks that the Worker cannot run; nobody reads them
	errorLoggedAt atomic.Int64           // when an error was last logged, in seconds
	storePaused   atomic.Bool            // the store is paused
}

// A currentRun is a call of Run that has not returned.
type currentRun struct {
	// stopCtx ends when Run must end: with Run's context, with errStopped, or with a
	// storeFailure. abortCtx ends when Run must stop waiting for handlers.
	stopCtx  context.Context
	stop     context.CancelCauseFunc
	abortCtx context.Context
	abort    context.CancelFunc

	done chan struct{} // closed when Run has ended
	err  error         // what Run returns; set before done is closed
}

// A storeFailure is a permanent error of the store.
type storeFailure struct{ error }

var errStopped = errors.New("durable: the Worker was stopped")

var errRunning = errors.New("durable: the Worker is running")

// NewWorker returns a Worker for the client's store. It panics if c or an option is
// nil, or if an option is invalid.
func NewWorker(c *Client, opts ...WorkerOption) *Worker {
	if c == nil {
		panic("durable: NewWorker: nil Client")
	}
	w := &Worker{
		client:   c,
		config:   newWorkerConfig(opts),
		clock:    clock.System(),
		handlers: make(map[string]*handler),
	}
	if own, ok := c.Store().(interface{ Clock() clock.Clock }); ok && own.Clock() != w.clock {
		w.clock, w.hasVirtualClock = own.Clock(), true
	}
	return w
}

func (w *Worker) now() time.Time { return w.clock.Now() }

// Handle registers h for tasks whose Handler is name. The Worker leaves tasks of other
// handlers to other Workers. Handle panics after Run, if name is taken or not a
// [store.IsName], or if h or an option is nil.
func (w *Worker) Handle(name string, h Handler, opts ...HandlerOption) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runCalled {
		panic("durable: Handle: called after Run")
	}
	config := w.config.handlerDefaults
	for i, o := range opts {
		panicIfNil("Handle", i, o)
		o.applyToHandler(&config)
	}
	var wrapped Handler
	for _, name := range append([]string{name}, config.formerNames...) {
		switch {
		case !store.IsName(name) || h == nil:
			panic(fmt.Sprintf("durable: Handle: the Handler is nil, or the name %q does not have %s", store.Shorten(name), nameRule))
		case w.handlers[name] != nil:
			panic(fmt.Sprintf("durable: Handle: the handler %q already exists", name))
		case wrapped == nil:
			wrapped = config.wrap(h)
		}
		w.handlers[name] = &handler{name: name, index: len(w.handlerNames), handlerConfig: config, wrappedHandler: wrapped}
		w.handlerNames = append(w.handlerNames, name)
	}
}

// Run runs tasks until ctx ends, or Shutdown or Close is called. When ctx has ended,
// Run waits for running handlers for up to [WithShutdownTimeout]. It hands the tasks of
// handlers that have not returned by then back to the store. It returns nil, or
// [ErrNotHandedBack] if the store has not confirmed its last reports.
//
// If the store has a permanent problem, such as [ErrSchema] or [ErrUnsafe], Run ends
// and returns the error. It logs other errors of the store and tries again.
//
// After Run has returned, it may be called again. While it is running, another call
// returns an error. After Shutdown or Close, Run returns [ErrClosed].
func (w *Worker) Run(ctx context.Context) (err error) {
	r := &currentRun{done: make(chan struct{})}
	r.stopCtx, r.stop = context.WithCancelCause(ctx)
	defer r.stop(nil)
	r.abortCtx, r.abort = context.WithCancel(context.WithoutCancel(ctx))
	defer r.abort()
	if err := w.setCurrentRun(r); err != nil {
		return err
	}
	defer func() {
		w.mu.Lock()
		w.currentRun = nil
		w.mu.Unlock()
		r.err = err
		close(r.done)
	}()
	if ready, err := w.awaitStore(r.stopCtx); !ready {
		return err
	}
	commandCtx, endCommands := context.WithCancel(context.WithoutCancel(ctx))
	defer endCommands()
	w.initRun(ctx, commandCtx)
	defer func() { w.timers.Close() }() // its result is not needed
	w.client.store.addWorker(w.run)
	defer w.client.store.removeWorker(w.run)

	var loops sync.WaitGroup
	start := func(f func()) {
		loops.Go(func() {
			if w.config.name != "" {
				pprof.SetGoroutineLabels(pprof.WithLabels(w.handlerCtx, pprof.Labels("worker", w.config.name)))
			}
			f()
		})
	}
	w.run.Start(start)
	listenCtx, stopListening := context.WithCancel(commandCtx)
	defer stopListening()
	start(func() { w.run.Listen(listenCtx) })
	if w.config.deadLimit != (deadLimit{}) {
		start(func() { w.purgeDeadLetters(listenCtx) })
	}
	<-r.stopCtx.Done()
	var failure storeFailure
	switch cause := context.Cause(r.stopCtx); {
	case errors.As(cause, &failure):
		r.abort()
	case cause != errStopped: // ctx has ended
		defer w.limitWaiting(r).Stop()
	}
	w.run.Stop()
	stopListening()
	w.awaitHandlers(r)

	w.run.SetPhase(worker.Closing)
	loopsEnded := make(chan struct{})
	go func() {
		loops.Wait()
		close(loopsEnded)
	}()
	select {
	case <-loopsEnded:
	case <-r.abortCtx.Done():
		select {
		case <-loopsEnded:
		case <-time.After(lastReportsTimeout):
			// The store does not answer: give up.
			endCommands()
			w.run.SetPhase(worker.Abandoned)
			<-loopsEnded
		}
	}
	w.waitForDeadHooks(r)
	if failure.error != nil {
		return errors.Join(fmt.Errorf("durable: the store failed permanently: %w", failure.error), w.unconfirmedError())
	}
	return w.unconfirmedError()
}

// limitWaiting makes Run stop waiting for handlers after the shutdown timeout.
func (w *Worker) limitWaiting(r *currentRun) *time.Timer {
	return time.AfterFunc(w.config.shutdownTimeout, r.abort)
}

func (w *Worker) failRun(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.currentRun != nil {
		w.currentRun.stop(storeFailure{err})
	}
}

// unconfirmedError returns an error if the store has not confirmed the reports on some
// attempts. The loops must have ended.
func (w *Worker) unconfirmedError() error {
	n := w.run.Unconfirmed()
	if n == 0 {
		return nil
	}
	w.client.log.Error("durable: the worker ends without an answer to its last reports; "+
		"their tasks may run again when the leases have expired", "attempts", n)
	return fmt.Errorf("%w: %d attempts", ErrNotHandedBack, n)
}

// lastReportsTimeout is how long Run still waits for the store when it no longer waits
// for handlers.
const lastReportsTimeout = time.Second

// setCurrentRun makes r the current Run. It returns an error if Run may not be called
// now.
func (w *Worker) setCurrentRun(r *currentRun) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return ErrClosed
	case w.currentRun != nil:
		return errRunning
	}
	w.runCalled, w.currentRun = true, r
	return nil
}

func (w *Worker) initRun(ctx, commandCtx context.Context) {
	w.deadHooks, w.pausedHandlers = new(sync.WaitGroup), nil
	w.handlerCtx, w.commandCtx = context.WithoutCancel(ctx), commandCtx
	timerOptions := []timer.Option{timer.WithName(w.config.name)}
	if w.hasVirtualClock {
		timerOptions = append(timerOptions, timer.WithClock(w.clock), timer.WithExecutor(executor.NewInline()))
	}
	w.timers = timer.New(timerOptions...)
	limits := make([]places.Limit, len(w.handlerNames))
	for i, name := range w.handlerNames {
		h := w.handlers[name]
		if limits[i], h.ctx = h.limit, w.handlerCtx; w.config.name != "" {
			h.ctx = pprof.WithLabels(w.handlerCtx, pprof.Labels("worker", w.config.name, "handler", name))
		}
	}
	pool := places.New(w.config.concurrency, limits, w.now, w.timers)
	w.places.Store(pool)
	w.run = worker.NewRun(worker.Config{
		Counters: &w.loopCounters, Claimed: w.newAttempt, Paused: w.logPause, LogError: w.logError, Fail: w.failRun,
		Store: w.client.store, Commands: commandCtx, Pool: pool,
		PlacesPerClaim: min(max(2*w.config.concurrency/w.client.store.Shards(), 1), store.MaxClaim),
		Now:            w.now, Timers: w.timers, HasVirtualClock: w.hasVirtualClock, Random: w.client.random,
		Name: newUniqueName(), Number: 1 + rand.Int64N(1<<40), About: w.describe(), Lease: w.config.lease, MaxCrashes: w.config.maxCrashes,
		Handlers: w.handlerNames, Schedules: slices.Sorted(maps.Keys(w.client.schedules)),
	})
}

// awaitHandlers waits for running handlers. If the Run must stop waiting, it cancels
// their contexts and hands their tasks back to the store.
func (w *Worker) awaitHandlers(r *currentRun) {
	idle := w.places.Load().End()
	w.run.SetPhase(worker.Stopping)
	select {
	case <-idle:
		return
	case <-r.abortCtx.Done():
	}
	w.run.SetPhase(worker.Aborting)
	// Give handlers that observe their contexts time to return.
	select {
	case <-idle:
	case <-time.After(min(w.config.lease/10, 500*time.Millisecond)):
		w.run.SetPhase(worker.HandingBack)
	}
}

// awaitStore waits until the store is usable. If the store has a permanent problem, it
// returns false and an error. If the Run ends first, it returns false and no error.
func (w *Worker) awaitStore(ctx context.Context) (ready bool, err error) {
	for pause := worker.MinRetryPause; ; pause = min(2*pause, worker.MaxRetryPause) {
		checkCtx, endCheck := context.WithTimeout(ctx, worker.AnswerTimeout(w.config.lease))
		health, err := w.client.Check(checkCtx)
		endCheck()
		switch {
		case err == nil, w.config.allowUnsafe && errors.Is(err, ErrUnsafe):
			w.storePaused.Store(slices.Contains(health.Warnings, pausedWarning))
			for _, warning := range health.Warnings {
				w.client.log.Warn("durable: " + warning)
			}
			return true, nil
		case ctx.Err() != nil:
			return false, nil
		case worker.IsPermanent(err):
			return false, err
		}
		w.logError(err)
		if worker.Sleep(ctx, pause) != nil {
			return false, nil
		}
	}
}

// Close makes Run end without waiting for handlers: the Worker cancels their contexts
// and hands their tasks back to the store. Close does not wait for the handlers, so a
// handler may call Close. To wait, also call [Worker.Shutdown]. The Worker cannot run
// again. Close returns nil.
func (w *Worker) Close() error {
	if r := w.stop(); r != nil {
		r.abort()
	}
	return nil
}

// Shutdown makes Run end, waits for it, and returns its result. The Worker starts no
// more tasks, and waits for running handlers: until ctx ends or, if ctx has no deadline,
// for up to [WithShutdownTimeout]. Then it hands their tasks back to the store.
//
// If ctx ends first, Shutdown does what [Worker.Close] does, waits for Run for up to
// two seconds more, and returns the context's error.
//
// Shutdown may be called more than once. The Worker cannot run again.
func (w *Worker) Shutdown(ctx context.Context) error {
	r := w.stop()
	if r == nil {
		return nil
	}
	if _, ok := ctx.Deadline(); !ok {
		defer w.limitWaiting(r).Stop()
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		r.abort()
		<-r.done
		return ctx.Err()
	}
}

// stop ends Run and returns its currentRun, or nil if Run is not running.
func (w *Worker) stop() *currentRun {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.currentRun != nil {
		w.currentRun.stop(errStopped)
	}
	w.closed = true
	return w.currentRun
}

// logPause logs, when that changes, that the store is paused, and which of the Worker's handlers
// are. All shards have the same, so only one loop logs the handlers.
func (w *Worker) logPause(shard int, paused bool, handlers []string) {
	if w.storePaused.Swap(paused) != paused && paused {
		w.client.log.Warn("durable: " + pausedWarning)
	}
	if shard != 0 || slices.Equal(handlers, w.pausedHandlers) {
		return
	}
	w.pausedHandlers = handlers
	if len(handlers) == 0 {
		w.client.log.Info("durable: no handler is paused any more")
		return
	}
	w.client.log.Warn("durable: handlers are paused: their tasks wait until they are resumed", "handlers", handlers)
}

// logError logs the error of a command, at most one each second. If the store is down,
// every shard reports the same error.
func (w *Worker) logError(err error) {
	now, before := time.Now().Unix(), w.errorLoggedAt.Load()
	if before != now && w.errorLoggedAt.CompareAndSwap(before, now) {
		w.client.log.Error("durable: a worker's command failed and is retried", "error", err)
	}
}
