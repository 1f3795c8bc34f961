package jobs

import (
	"context"
	"sync"
	"time"

	"github.com/tickless/tickless/timer"
)

// A Job runs a function repeatedly: see [Periodic] and [Calendar]. While a Job waits for
// its next run, it is one pending timer of its Scheduler.
//
// If the Scheduler is closed, the series ends after the present run. If the job is
// waiting or paused, it notices only when RunNow or Resume starts its timer: until then
// Next still returns a time, and Stop, Pause and Resume report true as before.
type Job struct {
	// Set once.

	s      *timer.Scheduler
	f      func()
	plan   plan
	onFire func() // the method value j.fire, made once
	// done is closed when the series is over and no run is in progress.
	done chan struct{}

	mu sync.Mutex

	// All below is guarded by mu.

	// busy is true while a goroutine runs the function or calls the plan. Only that
	// goroutine uses the plan and sets next.
	busy bool
	// next is the next occurrence, or the zero time if there is none.
	next   time.Time
	over   bool
	paused bool
	runNow bool

	// handle is the job's timer, unless Start has refused it because too many timers were
	// pending. Then spare is.
	handle timer.Handle
	spare  *timer.Timer
}

// # A job's life
//
// While a job waits, its timer is pending. The timer's function makes the job busy, lets
// the plan read the clock, and runs the job's function if an occurrence is due. Then it
// starts the timer for the next occurrence. So the timer is not pending during a run.
// After the run, the plan reads the clock again and decides about the occurrences that
// came during the run.
//
// The timer's function may run once too often: if Pause or Stop is too late to stop the
// timer, or if RunNow starts another. That does no harm. The function finds the job busy,
// paused or over and does nothing, or it finds no occurrence due and starts the timer
// again.

// A plan decides when a job's occurrences are. All its methods except wait are called
// while the job is busy, without its lock: they may run the user's code, which may panic.
type plan interface {
	// due reads the clock and reports whether an occurrence is due.
	due(*Job) bool
	// advance sets the next occurrence, just before the due one runs.
	advance(*Job)
	// ended handles the occurrences that came during the run that has just ended.
	ended(*Job)
	// resume sets the next occurrence, after a pause.
	resume(*Job)
	// wait returns how long to wait before due is called again. It is called with the job
	// locked.
	wait(*Job) time.Duration
}

// start starts a job whose next occurrence is set.
func start(j *Job) (*Job, error) {
	j.onFire, j.done = j.fire, make(chan struct{})
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.next.IsZero() {
		j.endLocked()
		return j, nil
	}
	var err error
	if j.handle, err = j.s.Start(j.plan.wait(j), j.onFire); err != nil {
		return nil, err
	}
	return j, nil
}

// fire is the timer's function.
func (j *Job) fire() {
	paused, runNow, ok := j.begin()
	if !ok {
		return
	}
	defer j.leave()
	due := !paused && j.plan.due(j)
	if !due && !runNow {
		return
	}
	defer j.run()
	if due {
		j.plan.advance(j) // if it panics, the deferred run still happens
	}
}

// run makes one run.
func (j *Job) run() {
	defer func() { // also if f panics or ends its goroutine
		if !j.isOver() {
			j.plan.ended(j)
		}
	}()
	j.f()
}

func (j *Job) isOver() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.over
}

// begin makes the job busy until leave. It reports false if nothing needs to run.
func (j *Job) begin() (paused, runNow, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.over || j.busy || j.paused && !j.runNow {
		return false, false, false
	}
	runNow, j.runNow = j.runNow, false
	j.busy = true
	return j.paused, runNow, true
}

// leave ends the busy state and starts the timer for what comes next.
func (j *Job) leave() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.busy = false
	switch {
	case j.over:
		close(j.done)
	case j.runNow:
		j.setTimerLocked(0)
	case !j.paused:
		j.setTimerLocked(j.plan.wait(j))
	}
}

// setTimerLocked sets the timer to fire after d. It replaces an earlier setting.
func (j *Job) setTimerLocked(d time.Duration) {
	j.stopTimerLocked()
	var err error
	switch j.handle, err = j.s.Start(d, j.onFire); {
	case err == nil:
	case err == timer.ErrClosed:
		j.endLocked()
	case j.spare == nil:
		j.spare = j.s.AfterFunc(d, j.onFire) // AfterFunc cannot be refused
	default:
		j.spare.Reset(d)
	}
}

func (j *Job) stopTimerLocked() {
	j.handle.Stop()
	if j.spare != nil {
		j.spare.Stop()
	}
}

// endLocked ends the series.
func (j *Job) endLocked() {
	j.over = true
	j.stopTimerLocked()
	if !j.busy {
		close(j.done)
	}
}

// setNext is called by the plan to set the next occurrence. The zero time ends the
// series.
func (j *Job) setNext(t time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.over {
		return
	}
	if j.next = t; t.IsZero() {
		j.endLocked()
	}
}

// lock locks j. It panics if j is a zero Job.
func (j *Job) lock() {
	if j.s == nil {
		panic("jobs: a Job that was not made by Periodic or Calendar")
	}
	j.mu.Lock()
}

// Stop ends the series. It reports false if the series was already over. It does not wait
// for a run in progress. No run begins after Stop.
func (j *Job) Stop() bool {
	j.lock()
	defer j.mu.Unlock()
	if j.over {
		return false
	}
	j.endLocked()
	return true
}

// StopWait ends the series, and waits for a run in progress. If ctx ends first, it
// returns the error of ctx. If the job's own function calls StopWait, it waits for
// itself, until ctx ends.
func (j *Job) StopWait(ctx context.Context) error {
	j.Stop()
	select {
	case <-j.done:
		return nil
	default:
	}
	select {
	case <-j.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// RunNow makes one run in addition to those of the series, even if the job is paused. It
// does not wait for the run. If a run is in progress, the new one begins after it.
// Several calls of RunNow share one run if it has not begun. RunNow reports false if the
// series is over.
func (j *Job) RunNow() bool {
	j.lock()
	defer j.mu.Unlock()
	if !j.over && !j.runNow {
		j.runNow = true
		if !j.busy {
			j.setTimerLocked(0)
		}
	}
	return !j.over
}

// Pause stops runs from beginning until Resume, except those of RunNow. It does not wait
// for a run in progress. It reports false if the job was already paused, or if the series
// is over.
func (j *Job) Pause() bool {
	j.lock()
	defer j.mu.Unlock()
	if j.over || j.paused {
		return false
	}
	j.paused = true
	if !j.runNow {
		j.stopTimerLocked()
	}
	return true
}

// Resume ends a pause. Occurrences that came during the pause are skipped: the next run
// is at the next occurrence, or after one period with [FixedDelay]. Resume reports false
// if the job was not paused, or if the series is over. It calls a [Schedule] on the
// calling goroutine.
func (j *Job) Resume() bool {
	j.lock()
	if j.over || !j.paused {
		j.mu.Unlock()
		return false
	}
	j.paused = false
	busy := j.busy
	j.busy = true
	j.mu.Unlock()
	if busy {
		return true // the goroutine that made the job busy starts the timer, in leave
	}
	defer j.leave()
	j.plan.resume(j)
	return true
}

// Next returns the time of the next occurrence. It returns the zero time if the series is
// over or the job is paused.
func (j *Job) Next() time.Time {
	j.lock()
	defer j.mu.Unlock()
	if j.over || j.paused {
		return time.Time{}
	}
	return j.next
}
