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
	setAt     time.Time
	submitted uint64
	ended     uint64
}

// init makes the timer before it is needed, on the goroutine that makes the pool: a timer
// that is made inside a synctest bubble cannot be set from outside.
func (w *watchdog) init(check func()) {
	w.timer = time.AfterFunc(1<<63-1, check)
	w.timer.Stop()
}

// watchLocked sets the watchdog's timer if callbacks wait and a check could start a
// worker for them. It does nothing if the pool has reached its maximum. It also does
// nothing while a started worker has not begun, because that worker takes a waiting
// callback.
func (p *Pool) watchLocked() {
	w := &p.watchdog
	if w.timerSet || p.starting > 0 || p.workers >= p.maxWorkers || p.queue.len(1) == 0 {
		return
	}
	w.timerSet = true
	w.setAt = time.Now()
	w.submitted, w.ended = p.submitted, p.endedLocked()
	w.timer.Reset(watchEvery)
}

// endedLocked returns how many callbacks have ended. Each worker that has begun counts as
// one running callback.
func (p *Pool) endedLocked() uint64 {
	return p.submitted - uint64(p.queue.len(unbounded)+p.workers-p.starting)
}

// check is the function of the watchdog's timer. If a callback has waited since the timer
// was set, and callbacks took long, check starts a worker for each callback that waits.
// It leaves short callbacks to the present workers, which finish them soon.
//
// While callbacks take long, workers yield between the callbacks of a batch that has more
// than fewCallbacks. Without the yield, a worker that computes would occupy its processor
// for 10 to 20 ms, and due timers would fire only after that.
//
// Workers of a bounded pool do not yield. After each yield, the next callback would have
// to wait until all computing goroutines had run.
func (p *Pool) check() {
	p.mu.Lock()
	w := &p.watchdog
	w.timerSet = false
	waiting := p.queue.len(unbounded)
	someWaited := waiting > 0 && p.submitted-uint64(waiting) < w.submitted
	tookLong := p.endedLocked()-w.ended < uint64(time.Since(w.setAt)/slowCallback)
	p.mustYield.Store(p.maxWorkers == unbounded && waiting > 0 && tookLong)
	if someWaited && tookLong && p.starting == 0 {
		p.workerLimit = min(p.maxWorkers, p.workers+min(waiting, maxNewWorkers)+p.baseWorkers)
	}
	n := p.addWorkersLocked()
	p.mu.Unlock()
	p.spawn(n)
}
