package requests

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/tickless/tickless/cmd/tickless/internal/measure"
)

// batchInterval is how long a worker sleeps between two batches. In each batch it sends
// all requests that are due.
const batchInterval = time.Millisecond

// waitUntilSettled gives up after maxStalledChecks checks without progress. It counts
// checks, because time passes even while the process is suspended.
const maxStalledChecks = 1000

// A run is one execution of a plan by a backend.
type run struct {
	plan    *Plan
	backend Backend
	begin   time.Time // set once, before the first request

	workers []progress
	firings atomic.Int32
	wrong   atomic.Int32 // see Result.Wrong; incremented before firings or stopped
}

// progress counts the requests of one worker. The padding keeps the counts of two workers
// out of one cache line.
type progress struct {
	// 32 bits are enough for MaxCount, and are always aligned on 32-bit machines.
	started atomic.Int32
	stopped atomic.Int32
	behind  time.Duration // how late the worker was at most; read when it has ended
	err     error         // read when the worker has ended
	_       [64]byte
}

func (r *run) now() time.Duration { return time.Since(r.begin) }

// fired is the callback of request i. After the end of the run it does nothing, because
// the timer has been counted as lost.
func (p *Plan) fired(i int) {
	r := p.run.Load()
	if r == nil {
		return
	}
	now := r.now()
	if p.states[i].CompareAndSwap(pending, fired) {
		p.lateness[i] = now - p.deadlines[i]
	} else {
		r.wrong.Inc() // fired twice, or after Stop returned true
	}
	r.backend.Fired(i)
	r.firings.Inc()
}

// settled returns how many requests have been started, and how many of them have been
// stopped or have fired.
func (r *run) settled() (started, settled int64) {
	settled = int64(r.firings.Load())
	for w := range r.workers {
		settled += int64(r.workers[w].stopped.Load())
	}
	settled -= int64(r.wrong.Load()) // counted twice; read last, so that settled is never too high
	for w := range r.workers {
		started += int64(r.workers[w].started.Load())
	}
	return started, settled
}

// Run runs the plan on b and closes b. If ctx ends, Run stops early and returns the
// result so far.
func (p *Plan) Run(ctx context.Context, b Backend) (Result, error) {
	p.reset()
	runtime.GC() // so that earlier garbage is not collected during the run
	b.Open()
	r := &run{plan: p, backend: b, workers: make([]progress, len(p.workers))}
	p.run.Store(r)
	defer p.run.Store(nil)

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpuBefore, hasCPU := measure.CPUTime()
	r.begin = time.Now()

	var working sync.WaitGroup
	for w := range r.workers {
		working.Go(func() { r.work(ctx, w) })
	}
	working.Wait()
	r.waitUntilSettled(ctx, 0)

	elapsed := r.now()
	cpuAfter, _ := measure.CPUTime()
	runtime.ReadMemStats(&after)

	stillPending, err := b.Close()
	for w := range r.workers {
		err = errors.Join(err, r.workers[w].err)
	}
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", b.Name(), err)
	}
	r.waitUntilSettled(context.Background(), int64(stillPending)) // for callbacks that Close came too late to prevent

	result := r.count()
	result.Name = b.Name()
	result.Interrupted = ctx.Err() != nil
	result.Elapsed = elapsed
	result.Pending = int64(stillPending)
	result.Lost = result.Started - (result.Stopped + result.Fired - result.Wrong) - result.Pending
	if hasCPU {
		cpu := cpuAfter - cpuBefore
		result.CPU = &cpu
	}
	result.Allocated = int64(after.TotalAlloc - before.TotalAlloc)
	return result, nil
}

// work runs worker w: in each batch, it sends all requests and answers that are due.
func (r *run) work(ctx context.Context, w int) {
	var (
		p       = r.plan
		mine    = p.workers[w]
		counts  = &r.workers[w]
		request = mine.first
		answer  int
		started int32
		stops   int32
	)
	for request < p.cfg.Count || answer < len(mine.answers) {
		if ctx.Err() != nil {
			return
		}
		now := r.now()
		for {
			sendAt, answerAt := never, never
			if request < p.cfg.Count {
				sendAt = p.arrival(request)
			}
			if answer < len(mine.answers) {
				answerAt = p.answerAt[mine.answers[answer]]
			}
			if min(sendAt, answerAt) > now {
				break
			}
			if sendAt <= answerAt {
				d := p.delays[request]
				begin := r.now()
				counts.behind = max(counts.behind, begin-sendAt)
				p.deadlines[request] = begin + d
				if err := r.backend.Start(request, d, p.callbacks[request]); err != nil {
					counts.err = err
					return
				}
				started++
				request += len(p.workers)
				continue
			}
			i := int(mine.answers[answer])
			answer++
			if !r.backend.Stop(i) {
				continue // too late: the timer fires
			}
			stops++
			if p.states[i].Swap(stopped) != pending {
				r.wrong.Inc() // Stop returned true, but the timer had fired
			}
		}
		counts.started.Store(started)
		counts.stopped.Store(stops)
		time.Sleep(batchInterval)
	}
}

// waitUntilSettled waits until all started requests are stopped or fired, except the
// stillPending ones that Close has counted. It gives up if there is no more progress.
func (r *run) waitUntilSettled(ctx context.Context, stillPending int64) {
	lastSettled := int64(-1)
	allDueAt := r.plan.cfg.Duration + r.plan.cfg.MaxDelay
	for n := 0; n < maxStalledChecks && ctx.Err() == nil; n++ {
		started, settled := r.settled()
		if settled+stillPending >= started {
			return
		}
		if settled != lastSettled || stillPending == 0 && r.now() < allDueAt {
			lastSettled, n = settled, 0
		}
		time.Sleep(batchInterval)
	}
}

// count adds up the results of the run.
func (r *run) count() Result {
	result := Result{Fired: int64(r.firings.Load()), Wrong: int64(r.wrong.Load())}
	for w := range r.workers {
		result.Started += int64(r.workers[w].started.Load())
		result.Stopped += int64(r.workers[w].stopped.Load())
		result.Behind = max(result.Behind, r.workers[w].behind)
	}
	var late []time.Duration
	for i := range r.plan.states {
		if r.plan.states[i].Load() != fired {
			continue
		}
		late = append(late, r.plan.lateness[i])
		if r.plan.lateness[i] < 0 {
			result.Early++
		}
	}
	result.Late = newLateness(late)
	return result
}
