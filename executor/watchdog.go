package executor

import "time"

const (
	// watchEvery is the time between two checks of the watchdog.
	watchEvery = time.Millisecond

	// slowCallback is the average time a callback must take, since the last check, for
	// the watchdog to start more workers.
	slowCallback = 100 * time.Microsecond

	// startAtMost bounds how many workers one check starts.
	startAtMost = 4096
)

// A watchdog checks whether callbacks wait behind others that take long. The pool's lock
// guards it.
type watchdog struct {
	timer *time.Timer
	set   bool

	// State of the pool at the last check.
	at        time.Time
	submitted uint64
	ended     uint64
}

// init makes the timer at once. A timer that is made inside a synctest bubble cannot be
// set from outside.
func (w *watchdog) init(tick func()) {
	w.timer = time.AfterFunc(1<<63-1, tick)
	w.timer.Stop()
}

// watchLocked sets the timer if callbacks wait and a check could start a worker for them.
// It does not while some workers have not begun, since these take what waits, nor when
// the pool has reached its maximum.
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

// endedLocked returns how many callbacks have ended. It takes each worker that has begun
// as one running callback.
func (p *Pool) endedLocked() uint64 {
	return p.submitted - uint64(p.queue.len(unbounded)+p.workers-p.starting)
}

// tick is the watchdog's check. If a callback has waited since the last check, and
// callbacks took long since then, tick starts a worker for each callback that waits. It
// leaves short callbacks to the present workers, which finish them soon.
//
// While callbacks take long, workers yield between two callbacks of a batch that has more
// than fewCallbacks. Otherwise a worker that computes would occupy its processor for 10 to
// 20 ms, until Go's scheduler looks for due timers. Workers of a bounded pool do not yield:
// beside goroutines that compute, each callback would wait for a turn of all of them.
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
