package executor

import "time"

const (
	// watchEvery is how often the watchdog checks, while callbacks wait. While workers
	// that were started wait for a processor it can start no more: until the last of them
	// has one it checks every watchSeldom. The goroutine of a check is in the way of
	// others that timers start at the same moment: see tick.
	watchEvery  = time.Millisecond
	watchSeldom = 32 * watchEvery

	// watchLate is how long a check may take to come, or longer if it was to come later
	// than after watchEvery, before it means that the processors are busy, not that
	// callbacks block. An idle Linux machine rounds a millisecond's sleep up to two.
	watchLate = 3 * watchEvery

	// slowCallback is how long a callback takes, on the average of all that ended
	// since the last check, from which on more workers are worth what they cost.
	slowCallback = 100 * time.Microsecond

	// growth multiplies the workers: a thousand callbacks that block for
	// ever are all running after four checks from a base of two.
	growth = 8

	// leap is how many workers are started at once where the processors are busy. The
	// next check may be long in coming: it waits for a processor, as they do.
	leap = 4096
)

// A watchdog remembers what it last saw. Guarded by the pool's lock.
type watchdog struct {
	timer *time.Timer
	armed bool // while callbacks wait for which no worker has been started

	at     time.Time
	every  time.Duration // from there to the next
	queued uint64        // callbacks that had been put in the queue
	run    uint64        // callbacks that had ended

	// A lap is the time between two checks. busy is whether the last check came
	// late; slow, whether callbacks took long; comers, how many workers have come
	// for more in this lap.
	lap    uint
	busy   bool
	slow   bool
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
		w.every = watchEvery
		w.check(p)
	}
}

func (w *watchdog) check(p *Pool) {
	w.at = time.Now()
	w.queued, w.run = p.progressLocked()
	w.lap++
	w.comers = 0
	w.timer.Reset(w.every)
}

// A turn is a worker's place in a lap. The zero turn of a lap is that of a
// worker which began in it.
type turn struct {
	lap   uint
	place int
}

// surplus reports whether a worker that comes for more should rather end: the
// processors are busy, callbacks are short, and a base of workers has come for more before it in
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
	return w.busy && !w.slow && t.place > base
}

// soonLocked has the next check come in watchEvery, if it was to come in watchSeldom. It
// leaves it to come then if a worker of a bubble's calls, which has not the time.
func (w *watchdog) soonLocked(p *Pool) {
	if w.armed && w.every > watchEvery && !p.isElsewhere() {
		w.every = watchEvery
		w.check(p)
	}
}

// progressLocked returns how many callbacks have been put in the queue, and
// how many have ended of all.
func (p *Pool) progressLocked() (queued, run uint64) {
	busy := p.queue.len() + p.shares.left() + p.workers - p.starting + p.callers + p.sharing
	return p.submitted - p.callerRan - p.shared, p.submitted - uint64(busy)
}

// restLocked ends the checks, until the watchdog is armed again. No callback waits in a
// Share.
func (p *Pool) restLocked() {
	w := &p.watch
	if w.armed { // else it is not set, and perhaps of a bubble that is over
		w.timer.Stop()
	}
	w.armed, w.busy, w.slow = false, false, false
	p.yields.Store(false)
	p.shares.takeOutAll()
}

// tick is the watchdog's check. It takes over what is left of Shares that last, and
// starts more workers if
//
//   - a callback that was waiting at the last check still waits, and
//   - all workers started before have got to run, and
//   - this check comes in time: then it multiplies them; or
//   - it comes late, and callbacks take long: then it starts one for each callback
//     that waits.
//
// Short callbacks on processors that others keep busy are left to the workers that
// there are: they are soon done with, and more workers only cost more. Where
// callbacks take long, those behind them must not wait for all of them, be it that
// they block or that they compute: then Go's scheduler shares the processors among
// them, as it does among the goroutines of time.AfterFunc. Growth stops at one
// worker for each callback that waits, so what it costs at most is what a goroutine
// for each callback would have.
//
// And where callbacks take long, workers let others run between two of them, as
// goroutines do that end. Else each worker computes for as long as Go's scheduler lets
// it, 10 to 20 ms, and only then it looks for timers that are due. Of goroutines that
// several of these start at one such look only the last runs at once; the one that is to
// ring for a Scheduler, if it is among the others, waits behind all that compute. Where
// there may not be a worker for each callback that waits they do not: with a few workers,
// beside goroutines that compute, callbacks of 150 µs would take not a part of a time
// slice each, but a round of all goroutines.
func (p *Pool) tick() {
	p.mu.Lock()
	w := &p.watch
	if !w.armed || !p.waitingLocked() {
		p.restLocked()
		p.mu.Unlock()
		return
	}
	elapsed := time.Since(w.at)
	adopted := p.adoptLocked()
	waiting := p.queue.len()
	queued, run := p.progressLocked()
	if p.workers >= p.max && run == w.run {
		// All workers that there may be are stuck: there is nothing to do for them.
		p.restLocked()
		p.mu.Unlock()
		return
	}
	waited := adopted || waiting > 0 && queued-uint64(waiting) < w.queued
	w.busy = elapsed-w.every >= watchLate-watchEvery
	w.slow = run-w.run < uint64(elapsed/slowCallback)
	if w.every = watchEvery; p.starting > 0 && p.shares.left() == 0 {
		w.every = watchSeldom
	}
	if p.starting == 0 && waited {
		switch {
		case w.slow && w.busy:
			p.limit = min(p.max, max(p.base, p.workers+min(waiting, leap)))
		case elapsed < watchEvery:
			// This check was on its way when the timer was set again: it says nothing.
		case !w.busy:
			p.limit = min(p.max, max(p.base, p.workers*growth))
		}
	}
	p.yields.Store(p.max == unbounded && (w.slow || elapsed < watchEvery && p.yields.Load()))
	n := p.startLocked()
	crowd := w.busy || p.starting > p.base // goroutines wait for a proc
	w.check(p)
	p.mu.Unlock()
	if crowd && p.onCrowd != nil {
		p.onCrowd()
	}
	p.spawn(n)
	if n > 0 {
		// That may have taken longer than watchEvery. The next check is not to be on its
		// way when onCheck makes a goroutine ready: it would take that one's place at the
		// front of the run queue, and send it behind all the workers.
		p.mu.Lock()
		if w.armed {
			w.check(p)
		}
		p.mu.Unlock()
	}
	if p.onCheck != nil {
		p.onCheck()
	}
}
