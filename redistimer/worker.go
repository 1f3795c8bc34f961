package redistimer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/tickless/tickless/timer"
)

// A Worker takes tasks that are due and runs their handlers. Make one with
// [NewWorker], tell it its handlers, and Run it. Any number of Workers, in one
// process or many, share a queue.
type Worker struct {
	client *Client
	config workerConfig
	// claimBatch is how many places a loop takes for a claim: so few that one
	// whose shard has little does not keep others from theirs.
	claimBatch int

	// Fixed by the first Run.

	handlers map[string]*handler

	// Fixed by each Run.

	// id names the Worker in Redis. It has no blanks, and is another for each Run.
	id     string
	timers *timer.Scheduler
	loops  []*loop
	ctx    context.Context // of the handlers, but for the cancelling

	stopping atomic.Bool
	slots    atomic.Pointer[slots] // nil before the first Run

	mu      sync.Mutex
	started bool // Run was called
	over    bool // Shutdown was called
	current *currentRun

	// remains is closed when nothing is left of the Run before; nil if nothing was.
	// It is of the Run that there is.
	remains chan struct{}
	// open counts the attempts of this Run whose leases the server may still have.
	open *atomic.Int64

	n struct {
		claimed, done, failed, died, released, lost atomic.Int64
		errors, claims, empty, wakeups, unknown     atomic.Int64
	}
	// doubts has an element if the servers are to be asked who they are.
	doubts     chan struct{}
	complained atomic.Int64 // when an error was logged, in seconds
	puzzled    atomic.Int64 // likewise for a task that names what the Worker does not have
}

// A currentRun is a call of Run.
type currentRun struct {
	// stop is closed when Run shall end, abort when it shall not wait for handlers
	// any more, and done when it has ended.
	stop, abort, done chan struct{}
	abortOnce         sync.Once
	err               error // what Run returns; set before done is closed
}

func (r *currentRun) dontWait() { r.abortOnce.Do(func() { close(r.abort) }) }

// lastReports is how long Run waits for commands under way when it is not to wait for
// handlers any more.
const lastReports = time.Second

var errRunning = errors.New("redistimer: the Worker is running")

// NewWorker returns a Worker for the client's queue. It panics if c or an option is
// nil, or an option out of its range.
func NewWorker(c *Client, opts ...WorkerOption) *Worker {
	if c == nil {
		panic("redistimer: NewWorker with a nil Client")
	}
	w := &Worker{
		client:   c,
		config:   newWorkerConfig(opts),
		handlers: make(map[string]*handler),
		doubts:   make(chan struct{}, 1),
	}
	w.claimBatch = min(max(2*w.config.concurrency/len(c.shards), 1), maxClaim)
	return w
}

// sender is the Worker's name as that of a sender of commands: see command.go.
func (w *Worker) sender() string { return "s:" + w.id }

// Handle has the Worker run h for tasks whose Handler is name. A task whose handler
// or schedule the Worker does not know is left to others: the Worker hands it back,
// the attempt does not count, and whoever comes next looks at it after a tenth of a
// second at first and half a minute at last. [Stats] counts that as Unknown. Handle
// panics if name is empty or taken, if h or an option is nil, and after Run.
func (w *Worker) Handle(name string, h Handler, opts ...HandlerOption) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case name == "" || h == nil:
		panic("redistimer: Handle with no name or a nil Handler")
	case w.handlers[name] != nil:
		panic(fmt.Sprintf("redistimer: Handle: there is a handler %q already", name))
	case w.started:
		panic("redistimer: Handle after Run")
	}
	x := &handler{name: name, run: h, handlerConfig: w.config.handler}
	for i, o := range opts {
		notNil("Handle", i, o)
		o.applyHandler(&x.handlerConfig)
	}
	w.handlers[name] = x
}

// Run runs tasks until the context is cancelled or Shutdown is called, and then
// shuts down by itself: it returns when every handler has returned, or after the
// time of [WithShutdownTimeout], with what the handlers had handed back to the
// queue. It returns nil then, or [ErrNotHandedBack] if the server does not answer.
//
// It returns an error at once if [Client.Check] has one that does not pass by
// itself: [ErrSchema], [ErrEviction], a password that is refused, a client that is
// closed, or one for a single server that has met a cluster. A server that does
// not answer, during a failover for example, is no reason to give up, neither at
// first nor later: Run logs that and tries again.
//
// After Run has returned it may be called again, but not at the same time, and not
// after Shutdown: then it returns [ErrShutdown].
func (w *Worker) Run(ctx context.Context) (err error) {
	r := &currentRun{stop: make(chan struct{}), abort: make(chan struct{}), done: make(chan struct{})}
	w.mu.Lock()
	switch {
	case w.over:
		w.mu.Unlock()
		return ErrShutdown
	case w.current != nil:
		w.mu.Unlock()
		return errRunning
	}
	w.started, w.current = true, r
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.current = nil
		w.mu.Unlock()
		r.err = err
		close(r.done)
	}()

	if w.remains != nil {
		select {
		case <-w.remains:
			w.remains = nil
		case <-ctx.Done():
			return nil
		case <-r.stop:
			return nil
		}
	}
	if ready, err := w.connect(ctx, r); !ready {
		return err
	}
	w.id = strconv.Itoa(os.Getpid()) + "-" + strconv.FormatUint(rand.Uint64(), 36)
	w.ctx = context.WithoutCancel(ctx)
	w.timers = timer.New()
	defer func() { w.timers.Close() }() // what it returns is not needed
	w.stopping.Store(false)
	w.open = new(atomic.Int64)
	slots := newSlots(w.config.concurrency)
	w.slots.Store(slots)

	var loops sync.WaitGroup
	var gather *gatherer
	if _, ok := w.client.redis.(*redis.Client); ok {
		gather = &gatherer{c: w.client, timers: w.timers, slack: w.config.slack}
	}
	w.loops = make([]*loop, len(w.client.shards))
	for i, sh := range w.client.shards {
		w.loops[i] = &loop{w: w, sh: sh, slots: slots, gather: gather, open: w.open, signal: make(chan struct{}, 1)}
	}
	for _, l := range w.loops {
		loops.Go(l.run)
	}
	ears := w.listen(slots)
	careful, endCare := context.WithCancel(w.ctx)
	defer endCare()
	loops.Go(func() { w.care(careful) })

	select {
	case <-ctx.Done():
		timeout := time.AfterFunc(w.config.shutdown, r.dontWait)
		defer timeout.Stop()
	case <-r.stop:
	}

	w.stopping.Store(true)
	slots.end()
	w.enter(stopping)
	endCare()
	loops.Go(ears.close)
	select {
	case <-slots.idle:
	case <-r.abort:
		w.enter(aborting)
		// A handler that heeds its context may have something to report.
		select {
		case <-slots.idle:
		case <-time.After(min(w.config.lease/10, 500*time.Millisecond)):
			w.enter(handing)
		}
	}
	w.enter(closing)
	closed := make(chan struct{})
	go func() {
		loops.Wait()
		close(closed)
	}()
	select {
	case <-closed:
	case <-r.abort:
		select {
		case <-closed:
		case <-time.After(lastReports):
			// The server does not answer, and go-redis waits for it.
			w.enter(abandoned)
			w.remains = closed
		}
	}
	if n := w.open.Load(); n > 0 {
		w.client.config.log.Error("redistimer: the worker ends without an answer to its last reports; "+
			"what they were about may come again when the leases have run out", "attempts", n)
		return fmt.Errorf("%w: %d attempts", ErrNotHandedBack, n)
	}
	return nil
}

// connect waits for servers that can be worked with. It returns false if there are
// none, with the error that says why, or without one if the run is over before.
func (w *Worker) connect(ctx context.Context, r *currentRun) (ready bool, err error) {
	// Nothing has been claimed yet that Shutdown would have to wait for.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-r.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	for pause := firstBackoff; ; pause = min(2*pause, lastBackoff) {
		health, err := w.client.Check(ctx)
		switch {
		case err == nil, w.config.evict && errors.Is(err, ErrEviction):
			for _, warning := range health.Warnings {
				w.client.config.log.Warn("redistimer: " + warning)
			}
			return true, nil
		case ctx.Err() != nil:
			return false, nil
		case !w.client.passes(err):
			return false, err
		}
		w.complain(err)
		if sleep(ctx, pause) != nil {
			return false, nil
		}
	}
}

// passes reports whether an error may be gone by itself before long: a connection
// that failed, or a reply of a server that starts or changes its role.
func (c *Client) passes(err error) bool {
	if errors.Is(err, ErrSchema) || errors.Is(err, ErrEviction) || errors.Is(err, redis.ErrClosed) || c.misplaced(err) {
		return false
	}
	var reply redis.Error
	if !errors.As(err, &reply) {
		return true
	}
	for _, prefix := range []string{
		"LOADING", "CLUSTERDOWN", "MASTERDOWN", "READONLY", "MOVED", "ASK", "TRYAGAIN", "BUSY", "OOM", "NOREPLICAS", "MISCONF",
		"ERR max number of clients reached",
	} {
		if strings.HasPrefix(reply.Error(), prefix) {
			return true
		}
	}
	return false
}

func (w *Worker) enter(p phase) {
	for _, l := range w.loops {
		l.enter(p)
	}
}

// Shutdown ends Run: no more tasks are started, and those that were claimed but
// not started are handed back. It waits for handlers that are under way until
// ctx is done; then it cancels their contexts and hands their tasks back, which
// other workers may run at once, and returns the context's error. That takes up to
// half a second if handlers do not heed their contexts, and a second more if the
// server does not answer. Attempts that are handed back do not count. If every
// handler has returned before, Shutdown returns what Run does: nil or
// [ErrNotHandedBack]. It may be called more than once. It is for good: Run returns
// [ErrShutdown] afterwards.
func (w *Worker) Shutdown(ctx context.Context) error {
	w.mu.Lock()
	r := w.current
	if r != nil && !w.over {
		close(r.stop)
	}
	w.over = true
	w.mu.Unlock()
	if r == nil {
		return nil
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		r.dontWait()
		<-r.done
		return ctx.Err()
	}
}

// complain logs an error of a command, at most one a second: when a server is
// down every shard has them.
func (w *Worker) complain(err error) {
	if oncePerSecond(&w.complained) {
		w.client.config.log.Error("redistimer: a worker's command failed; it is tried again", "error", err)
	}
}

// unknown logs a task that the Worker has left to others, at most one a second.
func (w *Worker) unknown(a *attempt) {
	if oncePerSecond(&w.puzzled) {
		w.client.config.log.Warn("redistimer: a task names a handler or a schedule that this worker does not have; it is left to others",
			"handler", a.task.Handler, "schedule", a.task.Schedule, "key", printable(a.task.Key))
	}
}

func oncePerSecond(last *atomic.Int64) bool {
	now, before := time.Now().Unix(), last.Load()
	return before != now && last.CompareAndSwap(before, now)
}

// WorkerStats are the numbers of one Worker since it first began to run.
type WorkerStats struct {
	Running  int   // handlers under way, and places taken for tasks that are being claimed
	Claimed  int64 // attempts begun
	Done     int64 // runs that ended well
	Failed   int64 // attempts that failed, those included that are tried no more
	Died     int64 // runs that became dead letters
	Released int64 // attempts handed back
	Unknown  int64 // attempts handed back since the Worker does not have the handler or the schedule
	Lost     int64 // reports that were refused, since the lease was lost before
	Errors   int64 // rounds of commands to Redis with an error
	Claims   int64 // claims sent
	Empty    int64 // claims that got nothing
	Wakeups  int64 // wake-ups for tasks that were scheduled before the next
}

// Stats returns the Worker's numbers.
func (w *Worker) Stats() WorkerStats {
	running := 0
	if s := w.slots.Load(); s != nil {
		running = s.taken()
	}
	return WorkerStats{
		Running:  running,
		Claimed:  w.n.claimed.Load(),
		Done:     w.n.done.Load(),
		Failed:   w.n.failed.Load(),
		Died:     w.n.died.Load(),
		Released: w.n.released.Load(),
		Unknown:  w.n.unknown.Load(),
		Lost:     w.n.lost.Load(),
		Errors:   w.n.errors.Load(),
		Claims:   w.n.claims.Load(),
		Empty:    w.n.empty.Load(),
		Wakeups:  w.n.wakeups.Load(),
	}
}
