package kafka

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/tickless/tickless/cmd/tickless/internal/measure"
	"github.com/tickless/tickless/delayqueue"
)

// pace is how long the generator sleeps when it has caught up with the
// plan. What falls due meanwhile arrives in one batch.
const pace = time.Millisecond

// patience is how long a run waits, once everything is due, for more to happen before it
// calls the rest lost. It looks that often meanwhile: if nothing of the process ran for a
// while, a timer that is overdue may only not have had its turn.
const (
	patience = 3 * time.Second
	looks    = 200
)

// A run is a plan being carried out by one side, as in Kafka's test:
// one goroutine has the requests arrive, and offers each that is to be answered
// to a delay queue, of which a second goroutine takes them to answer them.
type run struct {
	plan  *plan
	side  side
	base  time.Time
	queue *delayqueue.Queue[answerable]

	submitted atomic.Int64
	settled   atomic.Int64 // that were completed; an expiry may be still to be noted, until the side is closed
	wrong     atomic.Int64
	// behind and ended are the generator's, read when it has ended.
	behind time.Duration
	ended  time.Duration
}

func (r *run) now() time.Duration { return time.Since(r.base) }

// completed is the completion of request i.
func (r *run) completed(i int) {
	p := r.plan
	p.late[i] = r.now() - p.at[i] - p.latency[i]
	if !p.state[i].CompareAndSwap(arrived, completed) {
		r.wrong.Inc()
		return
	}
	r.settled.Inc()
}

// expired follows completed if the timeout was the reason.
func (r *run) expired(i int) {
	p := r.plan
	p.late[i] += p.latency[i] - p.config.Timeout
	if !p.state[i].CompareAndSwap(completed, expired) {
		r.wrong.Inc()
	}
}

// run puts the plan on side, which must be fresh, and returns what came of it.
// When ctx ends, nothing arrives and nothing is answered any more; the result is
// of what was done until then. A progress that is not nil is called several
// times a second with the number of requests that are over.
func (p *plan) run(ctx context.Context, side side, progress func(int64)) (result, error) {
	p.reset()
	runtime.GC() // so that garbage from before is not collected in the run
	heapBefore := measure.HeapInUse()
	r := &run{plan: p, side: side, queue: delayqueue.New[answerable]()}
	side.Open(r)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpuBefore, hasCPU := measure.CPUTime()
	r.base = time.Now()

	var watching sync.WaitGroup
	done := make(chan struct{})
	var peak int64
	watching.Go(func() { peak = r.watch(done, progress) })
	answering, stopAnswering := context.WithCancel(ctx)
	defer stopAnswering()
	var working sync.WaitGroup
	working.Go(func() {
		for {
			q, err := r.queue.Take(answering)
			if err != nil {
				return
			}
			q.answer()
		}
	})
	err := r.generate(ctx)
	r.waitUntilSettled(ctx)
	elapsed := r.now()
	cpuAfter, _ := measure.CPUTime()
	runtime.ReadMemStats(&after)
	stopAnswering()
	working.Wait()
	close(done)
	watching.Wait()

	watched, timers := side.Left()
	waiting, closeErr := side.Close()
	if err == nil {
		err = closeErr
	}
	if err != nil {
		return result{}, fmt.Errorf("%s: %w", side.Name(), err)
	}
	res := r.count()
	res.Name, res.Config, res.Elapsed = side.Name(), p.config, elapsed
	res.Interrupted = ctx.Err() != nil
	res.Waiting, res.Watched, res.Timers = waiting, watched, timers
	res.Lost = res.Arrived - res.Completed - res.Expired - int64(waiting)
	if hasCPU {
		cpu := cpuAfter - cpuBefore
		res.CPU = &cpu
	}
	res.Peak = max(peak-heapBefore, 0)
	res.Allocated = int64(after.TotalAlloc - before.TotalAlloc)
	res.GCCycles = after.NumGC - before.NumGC
	res.GCPause = time.Duration(after.PauseTotalNs - before.PauseTotalNs)
	return res, nil
}

// generate has the requests arrive, each at its moment by the plan or, when it
// has fallen behind, as soon after as it can.
func (r *run) generate(ctx context.Context) error {
	p := r.plan
	defer func() { r.ended = r.now() }()
	for i := 0; i < len(p.arrival); {
		if ctx.Err() != nil {
			return nil
		}
		for batchEnd := r.now() + pace; i < len(p.arrival); i++ {
			now := r.now()
			if p.arrival[i] > now || now > batchEnd {
				break
			}
			r.behind = max(r.behind, now-p.arrival[i])
			p.at[i] = now
			p.state[i].Store(arrived)
			q, err := r.side.Submit(i)
			if err != nil {
				return err
			}
			if p.answered(i) {
				r.queue.Offer(q, r.base.Add(now+p.latency[i]))
			}
			r.submitted.Inc()
		}
		if i < len(p.arrival) && p.arrival[i] > r.now() {
			time.Sleep(pace)
		}
	}
	return nil
}

// waitUntilSettled returns when all that has arrived is over, or when no more
// of it seems to come.
func (r *run) waitUntilSettled(ctx context.Context) {
	last, quiet := int64(-1), r.now()+r.plan.config.Timeout+patience
	for n := 0; ctx.Err() == nil && r.settled.Load() < r.submitted.Load() && (n < looks || r.now() < quiet); n++ {
		if settled := r.settled.Load(); settled != last {
			last, quiet, n = settled, max(quiet, r.now()+patience), 0
		}
		time.Sleep(pace)
	}
}

// watch calls progress until done is closed, and returns the most memory that
// the heap's objects took.
func (r *run) watch(done <-chan struct{}, progress func(int64)) (peak int64) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for n := 1; ; n++ {
		stop := false
		select {
		case <-tick.C:
		case <-done:
			stop = true
		}
		peak = max(peak, measure.HeapInUse())
		if progress != nil && (stop || n%10 == 0) {
			progress(r.settled.Load())
		}
		if stop {
			return peak
		}
	}
}

// count adds up the records of the run.
func (r *run) count() result {
	p := r.plan
	res := result{Arrived: r.submitted.Load(), Wrong: r.wrong.Load(), Behind: r.behind}
	if n := res.Arrived; n > 0 {
		// Of the requests that came, the last was planned for this moment.
		res.Target = float64(n) / p.arrival[n-1].Seconds()
		res.Achieved = float64(n) / r.ended.Seconds()
	}
	answers, timeouts := measure.NewLateHistogram(), measure.NewLateHistogram()
	for i := range p.state {
		switch p.state[i].Load() {
		case completed:
			res.Completed++
			answers.Record(p.late[i])
			if p.late[i] < 0 {
				res.Early++
			}
		case expired:
			res.Expired++
			timeouts.Record(p.late[i])
			if p.late[i] < 0 {
				res.Early++
			}
			if p.answered(i) {
				res.AnsweredTooLate++
			}
		}
	}
	res.CompletedLate, res.ExpiredLate = answers.Lateness(), timeouts.Lateness()
	return res
}
