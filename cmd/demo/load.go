package main

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/tickless/tickless/cmd/internal/figures"
	"github.com/tickless/tickless/timer"
)

// The timeouts of the requests, and the share that is answered in time.
const (
	minDelay = 100 * time.Millisecond
	maxDelay = 2 * time.Second
	answered = 0.9
)

// A backend is one of the two that are compared.
type backend struct {
	name string
	open func(n int) timers // for n requests
}

// timers are the timers of a run, one for each request.
type timers interface {
	// start starts the timer of request i: f must run after d.
	start(i int, d time.Duration, f func()) error
	// stop stops the timer of request i and reports whether that prevented f. The goroutine
	// that called start calls it.
	stop(i int) bool
	close() error
}

var backends = []backend{
	{"tickless", func(n int) timers { return &ticklessTimers{timer.New(), make([]timer.Handle, n)} }},
	{"time.AfterFunc", func(n int) timers { return stdTimers(make([]*time.Timer, n)) }},
}

type ticklessTimers struct {
	scheduler *timer.Scheduler
	handles   []timer.Handle
}

func (t *ticklessTimers) start(i int, d time.Duration, f func()) (err error) {
	t.handles[i], err = t.scheduler.Start(d, f)
	return err
}

func (t *ticklessTimers) stop(i int) bool { return t.handles[i].Stop() }

func (t *ticklessTimers) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return t.scheduler.Shutdown(ctx)
}

type stdTimers []*time.Timer

func (t stdTimers) start(i int, d time.Duration, f func()) error {
	t[i] = time.AfterFunc(d, f)
	return nil
}

func (t stdTimers) stop(i int) bool {
	stopped := t[i].Stop()
	t[i] = nil
	return stopped
}

func (t stdTimers) close() error { return nil }

// The states of a request: pending until stop returns true or its callback runs.
const (
	pending uint32 = iota
	stopped
	fired
)

// A request starts a timer, and stops it when it is answered. Times are from the start of
// the run.
type request struct {
	arrives, delay time.Duration
	answer         time.Duration // never: it times out
	deadline       time.Duration // written just before start, read by the callback
	late           time.Duration // written by the callback that sets the state to fired
	state          atomic.Uint32
	callback       func() // made in advance
}

const never = time.Duration(math.MaxInt64)

// A load is one run of the requests, on one backend.
type load struct {
	requests []request
	workers  []worker
	begin    time.Time
	settled  atomic.Int64 // requests that were stopped or have fired
	wrong    atomic.Int64 // timers that fired twice, or after stop returned true
}

// A worker is a goroutine that sends every n-th request and its answer, with n workers.
type worker struct {
	first   int
	answers []int         // its answered requests, in the order of their answers
	behind  time.Duration // how late it was at most
	err     error
}

// newLoad makes the load, which is the same each time.
func newLoad(count int, duration time.Duration) *load {
	l := &load{requests: make([]request, count), workers: make([]worker, runtime.GOMAXPROCS(0))}
	rng := rand.New(rand.NewPCG(1, 0))
	for i := range l.requests {
		x, w := &l.requests[i], &l.workers[i%len(l.workers)]
		x.arrives = time.Duration(float64(duration) * float64(i) / float64(count))
		x.delay = minDelay + time.Duration(rng.Int64N(int64(maxDelay-minDelay)+1))
		x.answer = never
		x.callback = func() { l.fire(x) }
		if rng.Float64() < answered {
			// No answer comes in the last tenth of the timeout: a busy machine may send it
			// late.
			x.answer = x.arrives + time.Duration(float64(x.delay)*0.9*rng.Float64())
			w.answers = append(w.answers, i)
		}
	}
	for i := range l.workers {
		w := &l.workers[i]
		w.first = i
		slices.SortFunc(w.answers, func(a, b int) int { return cmp.Compare(l.requests[a].answer, l.requests[b].answer) })
	}
	return l
}

func (l *load) now() time.Duration { return time.Since(l.begin) }

// fire is the callback of a request.
func (l *load) fire(x *request) {
	now := l.now()
	if x.state.CompareAndSwap(pending, fired) {
		x.late = now - x.deadline
		l.settled.Inc()
	} else {
		l.wrong.Inc()
	}
}

// batchInterval is how long a worker sleeps between two batches. In each batch it sends
// all requests and answers that are due.
const batchInterval = time.Millisecond

// send sends the worker's requests and answers.
func (l *load) send(w *worker, t timers) error {
	i, answers := w.first, w.answers
	for i < len(l.requests) || len(answers) > 0 {
		now := l.now()
		for {
			arrives, answer := never, never
			if i < len(l.requests) {
				arrives = l.requests[i].arrives
			}
			if len(answers) > 0 {
				answer = l.requests[answers[0]].answer
			}
			if min(arrives, answer) > now {
				break
			}
			if arrives <= answer {
				x, begin := &l.requests[i], l.now()
				w.behind = max(w.behind, begin-arrives)
				x.deadline = begin + x.delay
				if err := t.start(i, x.delay, x.callback); err != nil {
					return err
				}
				i += len(l.workers)
				continue
			}
			x := &l.requests[answers[0]]
			if t.stop(answers[0]) { // otherwise it is too late: the timer fires
				if x.state.Swap(stopped) == pending {
					l.settled.Inc()
				} else {
					l.wrong.Inc()
				}
			}
			answers = answers[1:]
		}
		time.Sleep(batchInterval)
	}
	return nil
}

// A result is the outcome of a run.
type result struct {
	name                               string
	stopped, fired, lost, early, wrong int64
	lateness                           []time.Duration // sorted
	behind                             time.Duration   // the most that the generator ran behind its plan
	cpu                                time.Duration   // user and system time; 0 if it is unknown
	allocated                          int64           // bytes on the heap, during the run
}

func (r *result) faults() int64 { return r.lost + r.early + r.wrong }

// late returns a quantile of how long after their deadlines callbacks ran.
func (r *result) late(q float64) time.Duration {
	if len(r.lateness) == 0 {
		return 0
	}
	return r.lateness[int(q*float64(len(r.lateness)-1))]
}

// maxStalledChecks is how often run looks in vain for another timer that fires. It counts,
// because time passes even while the process is suspended.
const maxStalledChecks = 1000

// run runs the load.
func (l *load) run(b backend) (result, error) {
	t := b.open(len(l.requests))
	runtime.GC() // so that earlier garbage is not collected during the run
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpuBefore, _ := figures.CPUTime()
	l.begin = time.Now()
	var working sync.WaitGroup
	for i := range l.workers {
		working.Go(func() { l.workers[i].err = l.send(&l.workers[i], t) })
	}
	working.Wait()
	r := result{name: b.name}
	var err error
	for i := range l.workers {
		err = errors.Join(err, l.workers[i].err)
		r.behind = max(r.behind, l.workers[i].behind)
	}
	last := int64(-1)
	for n := 0; err == nil && n < maxStalledChecks && l.settled.Load() < int64(len(l.requests)); n++ {
		if now := l.settled.Load(); now != last || l.now() < l.requests[len(l.requests)-1].arrives+maxDelay {
			last, n = now, 0
		}
		time.Sleep(batchInterval)
	}
	cpuAfter, _ := figures.CPUTime()
	runtime.ReadMemStats(&after)
	r.cpu, r.allocated = cpuAfter-cpuBefore, int64(after.TotalAlloc-before.TotalAlloc)
	err = errors.Join(err, t.close())
	r.wrong = l.wrong.Load()
	for i := range l.requests {
		switch x := &l.requests[i]; x.state.Load() {
		case pending:
			r.lost++
		case stopped:
			r.stopped++
		case fired:
			r.fired++
			if r.lateness = append(r.lateness, x.late); x.late < 0 {
				r.early++
			}
		}
	}
	slices.Sort(r.lateness)
	return r, err
}
