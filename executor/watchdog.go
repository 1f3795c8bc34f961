package executor

import (
	"time"

	"github.com/tickless/tickless/internal/share"
)

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

	// The state of the pool when the timer was set, or at an earlier call of Share.
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
	n := p.checkLocked()
	p.mu.Unlock()
	p.spawnWorkers(n)
}

// checkIfUnwatchedLocked is what a call of Share does about callbacks of earlier calls: it
// checks them if they have waited for checkInterval without the watchdog's timer. The
// result is as in countNewWorkersLocked.
func (p *Pool) checkIfUnwatchedLocked() (newWorkers int) {
	w := &p.watchdog
	if w.isTimerSet || p.queue.countWaiting(1) == 0 {
		return 0
	}
	if time.Since(w.timerSetAt) < checkInterval {
		p.setWatchdogLocked()
		return 0
	}
	return p.checkLocked()
}

// checkLocked decides to start a worker for each callback that waits, if callbacks take
// long and one has waited since the pool's state was noted. The result is as in
// countNewWorkersLocked.
func (p *Pool) checkLocked() (newWorkers int) {
	w := &p.watchdog
	waitingCount := p.queue.countWaiting(noLimit)
	oneWaitedSinceTimerSet := waitingCount > 0 && p.submittedCount-uint64(waitingCount) < w.submittedWhenSet
	callbacksTookLong := p.endedCountLocked()-w.endedWhenSet < uint64(time.Since(w.timerSetAt)/slowCallbackTime)
	// If callbacks compute for long, timers fire 10 to 20 ms late, unless workers yield
	// between callbacks. In a bounded pool they do not yield, because that would delay
	// the waiting callbacks.
	switch {
	case p.maxWorkers != noLimit || waitingCount == 0 || !callbacksTookLong:
		p.mustYield.Store(false)
	case p.startingWorkers == 0: // otherwise it may be the workers that wait, for a processor
		p.mustYield.Store(true)
	}
	if oneWaitedSinceTimerSet && callbacksTookLong && p.startingWorkers == 0 {
		share.CallbacksTakeLong()
		p.workerLimit = min(p.maxWorkers, p.workerCount+min(waitingCount, maxNewWorkers)+p.baseWorkers)
	}
	return p.countNewWorkersLocked()
}
