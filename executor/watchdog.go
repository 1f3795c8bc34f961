package executor

import "time"

const (
	// checkInterval is the time between two checks of the watchdog.
	checkInterval = time.Millisecond

	// The watchdog starts more workers if callbacks have taken slowCallbackTime or longer
	// on average since its timer was set.
	slowCallbackTime = 100 * time.Microsecond

	// maxNewWorkers is the largest number of workers that one check starts.
	maxNewWorkers = 4096
)

// A watchdog checks whether callbacks wait behind callbacks that take long. The pool's
// lock guards it.
type watchdog struct {
	timer      *time.Timer
	isTimerSet bool

	// The state of the pool when the timer was set, or when a Scheduler began to share its
	// callbacks: see sharer.
	timerSetAt       time.Time
	submittedWhenSet uint64
	endedWhenSet     uint64
}

// init makes the timer together with the pool, and not at its first use. If the first use
// were inside a synctest bubble, the timer could not be set outside the bubble.
func (w *watchdog) init(check func()) {
	w.timer = time.AfterFunc(1<<63-1, check)
	w.timer.Stop()
}

// setWatchdogLocked sets the watchdog's timer if callbacks wait and the pool has fewer
// workers than its maximum. If a new worker's goroutine has not run yet, the timer is not
// set, because that worker will take a waiting callback.
func (p *Pool) setWatchdogLocked() {
	w := &p.watchdog
	if w.isTimerSet || p.startingWorkers > 0 || p.workerCount >= p.maxWorkers || p.queue.countWaiting(1) == 0 {
		return
	}
	w.isTimerSet = true
	p.noteStateLocked()
	w.timer.Reset(checkInterval)
}

// noteStateLocked notes the state of the pool for the next check.
func (p *Pool) noteStateLocked() {
	w := &p.watchdog
	w.timerSetAt = time.Now()
	w.submittedWhenSet, w.endedWhenSet = p.submittedCount, p.endedCountLocked()
}

// endedCountLocked returns how many callbacks have ended. Each worker that has begun
// counts as one running callback.
func (p *Pool) endedCountLocked() uint64 {
	return p.submittedCount - uint64(p.queue.countWaiting(noLimit)+p.workerCount-p.startingWorkers)
}

// onWatchdogTimer is the function of the watchdog's timer.
func (p *Pool) onWatchdogTimer() {
	p.mu.Lock()
	p.watchdog.isTimerSet = false
	p.checkAndUnlock()
}

// checkAndUnlock starts a worker for each callback that waits, if callbacks take long and
// one has waited since the pool's state was noted. It unlocks mu.
func (p *Pool) checkAndUnlock() {
	w := &p.watchdog
	waitingCount := p.queue.countWaiting(noLimit)
	oneWaitedSinceTimerSet := waitingCount > 0 && p.submittedCount-uint64(waitingCount) < w.submittedWhenSet
	callbacksTookLong := p.endedCountLocked()-w.endedWhenSet < uint64(time.Since(w.timerSetAt)/slowCallbackTime)
	// If callbacks compute for long, timers fire 10 to 20 ms late, unless workers yield
	// between callbacks. In a bounded pool they do not yield, because that would delay
	// the waiting callbacks.
	p.mustYield.Store(p.maxWorkers == noLimit && waitingCount > 0 && callbacksTookLong)
	if oneWaitedSinceTimerSet && callbacksTookLong && p.startingWorkers == 0 {
		p.workerLimit = min(p.maxWorkers, p.workerCount+min(waitingCount, maxNewWorkers)+p.baseWorkers)
	}
	n := p.countNewWorkersLocked()
	p.mu.Unlock()
	p.spawnWorkers(n)
}
