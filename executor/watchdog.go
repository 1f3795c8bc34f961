package executor

import "time"

const (
	// watchEvery is the time between two checks of the watchdog.
	watchEvery = time.Millisecond

	// The watchdog starts more workers if callbacks have taken slowCallback or longer on
	// average since its timer was set.
	slowCallback = 100 * time.Microsecond

	// maxNewWorkers is the largest number of workers that one check starts.
	maxNewWorkers = 4096
)

// A watchdog checks whether callbacks wait behind callbacks that take long. The pool's
// lock guards it.
type watchdog struct {
	timer    *time.Timer
	timerSet bool

	// The state of the pool when the timer was set.
	setAt           time.Time
	submittedBefore uint64
	endedBefore     uint64
}

// init makes the timer on the goroutine that makes the pool: a timer that is made inside
// a synctest bubble cannot be set from outside.
func (w *watchdog) init(check func()) {
	w.timer = time.AfterFunc(1<<63-1, check)
	w.timer.Stop()
}

// watchLocked sets the watchdog's timer if callbacks wait and the pool may have more
// workers. While a started worker has not begun, it does nothing: that worker takes a
// waiting callback.
func (p *Pool) watchLocked() {
	w := &p.watchdog
	if w.timerSet || p.starting > 0 || p.workers >= p.maxWorkers || p.queue.len(1) == 0 {
		return
	}
	w.timerSet = true
	w.setAt = time.Now()
	w.submittedBefore, w.endedBefore = p.submitted, p.endedCountLocked()
	w.timer.Reset(watchEvery)
}

// endedCountLocked returns how many callbacks have ended. Each worker that has begun counts as
// one running callback.
func (p *Pool) endedCountLocked() uint64 {
	return p.submitted - uint64(p.queue.len(unbounded)+p.workers-p.starting)
}

// check is the function of the watchdog's timer. If callbacks take long, and one has
// waited since the timer was set, check starts a worker for each callback that waits.
func (p *Pool) check() {
	p.mu.Lock()
	w := &p.watchdog
	w.timerSet = false
	waiting := p.queue.len(unbounded)
	someWaited := waiting > 0 && p.submitted-uint64(waiting) < w.submittedBefore
	tookLong := p.endedCountLocked()-w.endedBefore < uint64(time.Since(w.setAt)/slowCallback)
	// Without yields, a worker that computes delays due timers by 10 to 20 ms. Workers of
	// a bounded pool do not yield: a yield would delay the callbacks behind it.
	p.mustYield.Store(p.maxWorkers == unbounded && waiting > 0 && tookLong)
	if someWaited && tookLong && p.starting == 0 {
		p.workerLimit = min(p.maxWorkers, p.workers+min(waiting, maxNewWorkers)+p.baseWorkers)
	}
	n := p.addWorkersLocked()
	p.mu.Unlock()
	p.spawn(n)
}
