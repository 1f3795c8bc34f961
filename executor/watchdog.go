package executor

import "time"

const (
	// watchEvery is how often the watchdog looks, while callbacks wait.
	watchEvery = time.Millisecond

	// watchLate is how long a look may take to come before it means that the
	// processors are busy, not that callbacks block. An idle Linux machine
	// rounds a millisecond's sleep up to two.
	watchLate = 3 * watchEvery

	// growth multiplies the workers: a thousand callbacks that block for
	// ever are all running after four looks from a base of two.
	growth = 8
)

// A watchdog remembers what it last saw. Guarded by the pool's lock.
type watchdog struct {
	timer *time.Timer
	armed bool // while callbacks wait for which no worker has been started

	at     time.Time
	queued uint64 // callbacks that had been put in the queue
	run    uint64 // callbacks that had ended

	// A lap is the time between two looks. busy is whether the last look came
	// late; comers, how many workers have come for more in this lap.
	lap    uint
	busy   bool
	comers int
}

// init makes the timer at once: one that is made inside a synctest bubble
// could not be set from outside.
func (w *watchdog) init(tick func()) {
	w.timer = time.AfterFunc(1<<63-1, tick)
	w.timer.Stop()
}

func (w *watchdog) arm(p *Pool) {
	if !w.armed {
		w.armed = true
		w.look(p)
	}
}

func (w *watchdog) look(p *Pool) {
	w.at = time.Now()
	w.queued, w.run = p.progressLocked()
	w.lap++
	w.comers = 0
	w.timer.Reset(watchEvery)
}

// A turn is a worker's place in a lap. The zero turn of a lap is that of a
// worker which began in it.
type turn struct {
	lap   uint
	place int
}

// surplus reports whether a worker that comes for more should rather end: the
// processors are busy, and a base of workers has come for more before it in
// this lap. (These may have ended since, when the queue was empty: so the last
// base of workers stays all the same.) Those that are held up never come, so
// they do not count: what ends are the workers that stood in for others which
// have come back. Without this, callbacks would share the processors a thousand
// ways for as long as the queue does not run empty.
func (w *watchdog) surplus(t *turn, base int) bool {
	if t.lap != w.lap {
		w.comers++
		*t = turn{w.lap, w.comers}
	}
	return w.busy && t.place > base
}

func (w *watchdog) stop() {
	w.armed = false
	w.timer.Stop()
}

// progressLocked returns how many callbacks have been put in the queue, and
// how many have ended of all.
func (p *Pool) progressLocked() (queued, run uint64) {
	busy := p.queue.len() + p.workers - p.starting + p.callers
	return p.submitted - p.callerRan, p.submitted - uint64(busy)
}

// tick is the watchdog's look. It multiplies the workers if
//
//   - a callback that was waiting at the last look still waits, and
//   - all workers started before have got to run, and
//   - no callback has ended since, or this look comes in time.
//
// Callbacks that use the processors rather than block keep new workers from
// getting to run and looks from coming in time, so they are left to the
// workers that there are. And growth stops at one worker for each callback
// that waits, so what it costs at most is what a goroutine for each callback
// would have.
func (p *Pool) tick() {
	p.mu.Lock()
	w := &p.watch
	waiting := p.queue.len()
	if waiting == 0 || !w.armed {
		w.armed, w.busy = false, false
		p.mu.Unlock()
		return
	}
	queued, run := p.progressLocked()
	waited := queued-uint64(waiting) < w.queued
	stalled := run == w.run
	w.busy = time.Since(w.at) >= watchLate
	n := 0
	if p.starting == 0 && waited && (stalled || !w.busy) {
		p.limit = min(p.max, max(p.base, p.workers*growth))
		n = p.startLocked()
	}
	w.look(p)
	p.mu.Unlock()
	p.spawn(n)
}
