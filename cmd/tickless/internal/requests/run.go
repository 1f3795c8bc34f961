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

// pace is how long a worker that is not behind the plan sleeps. It then sends in one
// batch what is due.
const pace = time.Millisecond

// patience is how many times in a row waitUntilSettled sees no progress before it
// counts the missing timers as lost. It is a number of checks and not a duration,
// because a process may be suspended.
const patience = 1000

// A run is one execution of a plan by a backend.
type run struct {
	plan    *Plan
	backend Backend
	base    time.Time // set once, before the first request

	workers []tally
	firings atomic.Int32
	wrong   atomic.Int32 // counted before the firing, or the stop, that it is about
}

// A tally is the progress of one worker. Only that worker writes it, after each batch.
// Padding keeps it on its own cache line.
type tally struct {
	// 32 bits are enough for MaxCount and need no alignment on 32-bit machines.
	started atomic.Int32
	stopped atomic.Int32
	behind  time.Duration // read when the worker has ended
	err     error         // likewise
	_       [64]byte
}

func (r *run) now() time.Duration { return time.Since(r.base) }

// fired is the callback of request i. A callback that comes after the run belongs to a
// timer that was counted as lost.
func (p *Plan) fired(i int) {
	r := p.run.Load()
	if r == nil {
		return
	}
	now := r.now()
	if p.state[i].CompareAndSwap(pending, fired) {
		p.late[i] = now - p.due[i]
	} else {
		r.wrong.Inc() // a second time, or after Stop returned true
	}
	r.backend.Fired(i)
	r.firings.Inc()
}

// settled returns how many requests have been started, and how many of these have been
// stopped or have fired.
func (r *run) settled() (started, settled int64) {
	settled = int64(r.firings.Load())
	for w := range r.workers {
		settled += int64(r.workers[w].stopped.Load())
	}
	settled -= int64(r.wrong.Load()) // those had been settled before
	for w := range r.workers {
		started += int64(r.workers[w].started.Load())
	}
	return started, settled
}

// Run runs the plan on b, which must be new, and returns the result. It takes about the
// sum of the plan's duration and its longest delay. If ctx ends, Run stops early,
// closes b and returns the result so far.
func (p *Plan) Run(ctx context.Context, b Backend) (Result, error) {
	p.reset()
	runtime.GC() // so that the garbage of what came before is not collected in the run
	b.Open()
	r := &run{plan: p, backend: b, workers: make([]tally, len(p.workers))}
	p.run.Store(r)
	defer p.run.Store(nil)

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpuBefore, hasCPU := measure.CPUTime()
	r.base = time.Now()

	var working sync.WaitGroup
	for w := range r.workers {
		working.Go(func() { r.work(ctx, w) })
	}
	working.Wait()
	r.waitUntilSettled(ctx, 0)

	elapsed := r.now()
	cpuAfter, _ := measure.CPUTime()
	runtime.ReadMemStats(&after)

	left, err := b.Close()
	for w := range r.workers {
		err = errors.Join(err, r.workers[w].err)
	}
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", b.Name(), err)
	}
	r.waitUntilSettled(context.Background(), int64(left)) // callbacks that were on their way

	res := r.count()
	res.Name = b.Name()
	res.Interrupted = ctx.Err() != nil
	res.Elapsed = elapsed
	res.Pending = int64(left)
	res.Lost = res.Started - (res.Stopped + res.Fired - res.Wrong) - res.Pending
	if hasCPU {
		cpu := cpuAfter - cpuBefore
		res.CPU = &cpu
	}
	res.Allocated = int64(after.TotalAlloc - before.TotalAlloc)
	return res, nil
}

// work sends and answers the requests of worker w at their planned times, or as soon as
// possible if it is behind.
func (r *run) work(ctx context.Context, w int) {
	var (
		p       = r.plan
		mine    = p.workers[w]
		out     = &r.workers[w]
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
				out.behind = max(out.behind, begin-sendAt)
				p.due[request] = begin + d
				if err := r.backend.Start(request, d, p.fire[request]); err != nil {
					out.err = err
					return
				}
				started++
				request += len(p.workers)
				continue
			}
			i := int(mine.answers[answer])
			answer++
			if !r.backend.Stop(i) {
				continue // too late: it fires
			}
			stops++
			if p.state[i].Swap(stopped) != pending {
				r.wrong.Inc() // it had fired, and yet Stop returned true
			}
		}
		out.started.Store(started)
		out.stopped.Store(stops)
		time.Sleep(pace)
	}
}

// waitUntilSettled returns when all but left of the started requests have been stopped
// or have fired, or when there is no progress any more.
func (r *run) waitUntilSettled(ctx context.Context, left int64) {
	last := int64(-1)
	allDue := r.plan.cfg.Duration + r.plan.cfg.MaxDelay
	for n := 0; n < patience && ctx.Err() == nil; n++ {
		started, settled := r.settled()
		if settled+left >= started {
			return
		}
		if settled != last || left == 0 && r.now() < allDue {
			last, n = settled, 0
		}
		time.Sleep(pace)
	}
}

// count sums up the records of the run.
func (r *run) count() Result {
	res := Result{Fired: int64(r.firings.Load()), Wrong: int64(r.wrong.Load())}
	for w := range r.workers {
		res.Started += int64(r.workers[w].started.Load())
		res.Stopped += int64(r.workers[w].stopped.Load())
		res.Behind = max(res.Behind, r.workers[w].behind)
	}
	var late []time.Duration
	for i := range r.plan.state {
		if r.plan.state[i].Load() != fired {
			continue
		}
		late = append(late, r.plan.late[i])
		if r.plan.late[i] < 0 {
			res.Early++
		}
	}
	res.Late = newLateness(late)
	return res
}
