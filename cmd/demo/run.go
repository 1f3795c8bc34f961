package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/tickless/tickless/cmd/internal/figures"
)

// batchInterval is how long a worker sleeps between two batches. In each batch it sends
// all requests that are due.
const batchInterval = time.Millisecond

// waitUntilSettled gives up after maxStalledChecks checks without progress. It counts
// checks, because time passes even while the process is suspended.
const maxStalledChecks = 1000

// A run is one execution of a plan by a backend.
type run struct {
	plan      *Plan
	backend   Backend
	startTime time.Time // set once, before the first request

	progress                 []workerProgress
	numFired                 atomic.Int32
	numFiredTwiceOrAfterStop atomic.Int32 // see Result; incremented before numFired or numStopped
}

// workerProgress counts the requests of one worker. The padding keeps the counts of two
// workers out of one cache line.
type workerProgress struct {
	// 32 bits are enough for MaxCount, and are always aligned on 32-bit machines.
	numStarted atomic.Int32
	numStopped atomic.Int32
	maxBehind  time.Duration // how late the worker was at most; read when it has ended
	err        error         // read when the worker has ended
	_          [64]byte
}

func (r *run) now() time.Duration { return time.Since(r.startTime) }

// handleFired is the callback of request i. After the end of the run it does nothing,
// because the timer has been counted as lost.
func (p *Plan) handleFired(i int) {
	r := p.currentRun.Load()
	if r == nil {
		return
	}
	now := r.now()
	if p.states[i].CompareAndSwap(pending, fired) {
		p.lateness[i] = now - p.deadlines[i]
	} else {
		r.numFiredTwiceOrAfterStop.Inc() // fired twice, or after Stop returned true
	}
	r.backend.ForgetTimer(i)
	r.numFired.Inc()
}

// countSettled returns how many requests have been started, and how many of them have
// been stopped or have fired.
func (r *run) countSettled() (started, settled int64) {
	settled = int64(r.numFired.Load())
	for w := range r.progress {
		settled += int64(r.progress[w].numStopped.Load())
	}
	settled -= int64(r.numFiredTwiceOrAfterStop.Load()) // counted twice; read last, so that settled is never too high
	for w := range r.progress {
		started += int64(r.progress[w].numStarted.Load())
	}
	return started, settled
}

// Run runs the plan on b and closes b. If ctx ends, Run stops early and returns the
// result so far.
func (p *Plan) Run(ctx context.Context, b Backend) (Result, error) {
	p.resetResults()
	runtime.GC() // so that earlier garbage is not collected during the run
	b.Open()
	r := &run{plan: p, backend: b, progress: make([]workerProgress, len(p.workers))}
	p.currentRun.Store(r)
	defer p.currentRun.Store(nil)

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpuBefore, hasCPU := figures.CPUTime()
	r.startTime = time.Now()

	var working sync.WaitGroup
	for w := range r.progress {
		working.Go(func() { r.runWorker(ctx, w) })
	}
	working.Wait()
	r.waitUntilSettled(ctx, 0)

	elapsed := r.now()
	cpuAfter, _ := figures.CPUTime()
	runtime.ReadMemStats(&after)

	stillPending, err := b.Close()
	for w := range r.progress {
		err = errors.Join(err, r.progress[w].err)
	}
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", b.Name(), err)
	}
	r.waitUntilSettled(context.Background(), int64(stillPending)) // for callbacks that Close came too late to prevent

	result := r.sumResults()
	result.Name = b.Name()
	result.Interrupted = ctx.Err() != nil
	result.Elapsed = elapsed
	result.Pending = int64(stillPending)
	result.Lost = result.Started - (result.Stopped + result.Fired - result.FiredTwiceOrAfterStop) - result.Pending
	if hasCPU {
		cpuUsed := cpuAfter - cpuBefore
		result.CPU = &cpuUsed
	}
	result.Allocated = int64(after.TotalAlloc - before.TotalAlloc)
	return result, nil
}

// runWorker runs worker w: in each batch, it sends all requests and answers that are due.
func (r *run) runWorker(ctx context.Context, w int) {
	var (
		p       = r.plan
		mine    = p.workers[w]
		counts  = &r.progress[w]
		request = mine.firstRequest
		answer  int
		started int32
		stops   int32
	)
	for request < p.config.Count || answer < len(mine.answeredRequests) {
		if ctx.Err() != nil {
			return
		}
		now := r.now()
		for {
			sendAt, answerAt := never, never
			if request < p.config.Count {
				sendAt = p.arrivalTime(request)
			}
			if answer < len(mine.answeredRequests) {
				answerAt = p.answerAt[mine.answeredRequests[answer]]
			}
			if min(sendAt, answerAt) > now {
				break
			}
			if sendAt <= answerAt {
				d := p.delays[request]
				begin := r.now()
				counts.maxBehind = max(counts.maxBehind, begin-sendAt)
				p.deadlines[request] = begin + d
				if err := r.backend.Start(request, d, p.callbacks[request]); err != nil {
					counts.err = err
					return
				}
				started++
				request += len(p.workers)
				continue
			}
			i := int(mine.answeredRequests[answer])
			answer++
			if !r.backend.Stop(i) {
				continue // too late: the timer fires
			}
			stops++
			if p.states[i].Swap(stopped) != pending {
				r.numFiredTwiceOrAfterStop.Inc() // Stop returned true, but the timer had fired
			}
		}
		counts.numStarted.Store(started)
		counts.numStopped.Store(stops)
		time.Sleep(batchInterval)
	}
}

// waitUntilSettled waits until all started requests are stopped or fired, except the
// stillPending ones that Close has counted. It gives up if there is no more progress.
func (r *run) waitUntilSettled(ctx context.Context, stillPending int64) {
	lastSettled := int64(-1)
	allDueAt := r.plan.config.Duration + r.plan.config.MaxDelay
	for n := 0; n < maxStalledChecks && ctx.Err() == nil; n++ {
		started, settled := r.countSettled()
		if settled+stillPending >= started {
			return
		}
		if settled != lastSettled || stillPending == 0 && r.now() < allDueAt {
			lastSettled, n = settled, 0
		}
		time.Sleep(batchInterval)
	}
}

// sumResults adds up the results of the run.
func (r *run) sumResults() Result {
	result := Result{Fired: int64(r.numFired.Load()), FiredTwiceOrAfterStop: int64(r.numFiredTwiceOrAfterStop.Load())}
	for w := range r.progress {
		result.Started += int64(r.progress[w].numStarted.Load())
		result.Stopped += int64(r.progress[w].numStopped.Load())
		result.MaxBehind = max(result.MaxBehind, r.progress[w].maxBehind)
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
