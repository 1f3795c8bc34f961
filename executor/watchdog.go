package executor

import "time"

const (
	// watchEvery is the time between two checks of the watchdog.
	watchEvery = time.Millisecond

	// If callbacks have taken slowCallback or longer on average, since the watchdog's
	// timer was set, it starts more workers.
	slowCallback = 100 * time.Microsecond

	// maxNewWorkers is the largest number of workers that one check starts.
	startAtMost = 4096
)

// A watchdog checks whether callbacks wait behind callbacks that take long. The pool's
// lock guards it.
type watchdog struct {
	timer *time.Timer
	set   bool

	// The state of the pool when the timer was set.
	at        time.Time
	submitted uint64
	ended     uint64
}

// init makes the timer before it is needed, on the goroutine that makes the pool: a timer
// that is made inside a synctest bubble cannot be set from outside.
func (w *watchdog) init(tick func()) {
	w.timer = time.AfterFunc(1<<63-1, tick)
	w.timer.Stop()
}

// watchLocked sets the watchdog's timer if callbacks wait and a check could start a
// worker for them. It does nothing if the pool has reached its maximum. It also does
// nothing while a started worker has not begun, because that worker takes a waiting
// callback.
func (p *Pool) watchLocked() {
	w := &p.watch
	if w.set || p.starting > 0 || p.workers >= p.max || p.queue.len(1) == 0 {
		return
	}
	w.set = true
	w.at = time.Now()
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
// for 10 to 20 ms, and Go would fire its due timers only then. Workers of a bounded pool
// do not yield: each callback would have to wait until all computing goroutines had run.
func (p *Pool) tick() {
	p.mu.Lock()
	w := &p.watch
	w.set = false
	waiting := p.queue.len(unbounded)
	waited := waiting > 0 && p.submitted-uint64(waiting) < w.submitted
	slow := p.endedLocked()-w.ended < uint64(time.Since(w.at)/slowCallback)
	p.yields.Store(p.max == unbounded && waiting > 0 && slow)
	if waited && slow && p.starting == 0 {
		p.limit = min(p.max, p.workers+min(waiting, startAtMost)+p.base)
	}
	n := p.addWorkersLocked()
	p.mu.Unlock()
	p.spawn(n)
}
