package executor

import "time"

const (
	// watchEvery is how often the watchdog checks, while callbacks wait.
	watchEvery = time.Millisecond

	// slowCallback is how long a callback takes, on the average of all that ended
	// since the last check, from which on more workers are worth what they cost.
	slowCallback = 100 * time.Microsecond

	// startAtMost is how many workers one check starts.
	startAtMost = 4096
)

// A watchdog checks whether callbacks wait behind others that take long. The pool's lock
// guards it.
type watchdog struct {
	timer *time.Timer
	set   bool

	// What the last check saw.
	at        time.Time
	submitted uint64
	ended     uint64
}

// init makes the timer at once: one that is made inside a synctest bubble
// could not be set from outside.
func (w *watchdog) init(tick func()) {
	w.timer = time.AfterFunc(1<<63-1, tick)
	w.timer.Stop()
}

// watchLocked sets the timer if callbacks wait and the check may have something to do. It
// has not while workers that were started have not begun, since these take what waits;
// nor with all workers that there may be.
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

// endedLocked returns how many callbacks have ended. Those that run are as many as there
// are workers that have begun.
func (p *Pool) endedLocked() uint64 {
	return p.submitted - uint64(p.queue.len(unbounded)+p.workers-p.starting)
}

// tick is the watchdog's check. If a callback that was waiting at the last check still
// waits, and callbacks took long since, it starts a worker for each that waits: then they
// wait no longer than on goroutines of their own, be it that those before them block or
// that they compute. Short callbacks are left to the workers that there are, which are
// soon done with them.
//
// Where callbacks take long, workers let others run between two of them, as goroutines do
// that end: else each worker computes for 10 to 20 ms until Go's scheduler looks for timers
// that are due. Where there may not be a worker for each callback they do not: beside
// goroutines that compute, each callback would wait for a round of all of them.
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
	n := p.startLocked()
	p.mu.Unlock()
	p.spawn(n)
}
