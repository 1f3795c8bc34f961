package jobs

import (
	"context"
	"sync"
	"time"

	"github.com/tickless/tickless/timer"
)

// A Job is a function that runs again and again: see [Periodic] and [Calendar]. While
// it waits for its next run it is one pending timer of its Scheduler.
//
// If the Scheduler is closed, the series ends with the run that is under way. A job that
// waits or is paused then notices only when RunNow or Resume starts its timer: until then
// Next still returns a time, and Stop, Pause and Resume report true as before.
type Job struct {
	// Fixed.

	s      *timer.Scheduler
	f      func()
	plan   plan
	onFire func() // fire, as one value
	// done is closed when the series is over and no run is under way.
	done chan struct{}

	mu sync.Mutex

	// All below is guarded by mu.

	// busy: a goroutine runs the function or the plan. Only that goroutine uses the plan
	// and sets next.
	busy bool
	// next is the next occurrence, or the zero time if there is none.
	next   time.Time
	over   bool
	paused bool
	runNow bool

	// handle is the job's timer. If Start refused it because too many timers were pending,
	// spare is the job's timer.
	handle timer.Handle
	spare  *timer.Timer
}

// # A job's life
//
// While a job waits, its timer is pending. The timer's function makes the job busy. It
// lets the plan look at the clock, and runs the job's function if an occurrence has
// come. Then it starts the timer for the next one. So no timer is pending for the series
// during a run. When the run has ended, the plan reads the clock and finds out which
// occurrences came meanwhile.
//
// If Pause or Stop is too late to stop the timer, or RunNow starts another, the timer's
// function may run once too often. That does no harm: it finds the job busy, paused or
// over, or it finds no occurrence due, and starts the timer again in place of the one
// that is pending.

// A plan says when a job's occurrences are. All its methods except wait are called while
// the job is busy, without its lock: they may run the user's code, which may panic.
type plan interface {
	// look looks at the clock, and reports whether an occurrence is due.
	look(*Job) bool
	// advance sets the next occurrence, when one is due and about to run.
	advance(*Job)
	// ended deals with the occurrences that came during the run that has just ended.
	ended(*Job)
	// resume sets the next occurrence, after a pause.
	resume(*Job)
	// wait returns how long it is to the next look. The job is locked then.
	wait(*Job) time.Duration
}

// start starts a job, whose next occurrence is set.
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
	paused, runNow, ok := j.enter()
	if !ok {
		return
	}
	defer j.leave()
	due := !paused && j.plan.look(j)
	if !due && !runNow {
		return
	}
	defer j.run()
	if due {
		j.plan.advance(j) // if it panics, the run is made all the same
	}
}

// run makes one run.
func (j *Job) run() {
	defer func() { // for a run that panics or ends its goroutine
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

// enter makes the job busy. It reports false if there is nothing to do.
func (j *Job) enter() (paused, runNow, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.over || j.busy || j.paused && !j.runNow {
		return false, false, false
	}
	runNow, j.runNow = j.runNow, false
	j.busy = true
	return j.paused, runNow, true
}

// leave ends what enter began.
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

// setTimerLocked makes the timer fire after d, in place of when it would.
func (j *Job) setTimerLocked(d time.Duration) {
	j.stopTimerLocked()
	var err error
	switch j.handle, err = j.s.Start(d, j.onFire); {
	case err == nil:
	case err == timer.ErrClosed:
		j.endLocked()
	case j.spare == nil:
		j.spare = j.s.AfterFunc(d, j.onFire) // which cannot be refused
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

// setNext is called by the plan. The zero time ends the series.
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

// lock locks a job that was made.
func (j *Job) lock() {
	if j.s == nil {
		panic("jobs: a Job that was not made by Periodic or Calendar")
	}
	j.mu.Lock()
}

// Stop ends the series. It reports false if it was over already. It does not wait for a
// run that is under way; no run begins after it.
func (j *Job) Stop() bool {
	j.lock()
	defer j.mu.Unlock()
	if j.over {
		return false
	}
	j.endLocked()
	return true
}

// StopWait ends the series, and waits for the run that is under way. It returns the
// error of ctx if that ends first. Inside the job's own function it waits for that run,
// and so for ctx to end.
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

// RunNow makes one run besides those of the series, also if the job is paused. It does
// not wait for it. If a run is under way, the new one begins when that has ended. Calls
// of RunNow share one run until it begins. RunNow reports false if the series is over.
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

// Pause keeps runs from beginning until Resume, except those of RunNow. It does not wait for a
// run that is under way. It reports false if the job was paused already, or if the
// series is over.
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

// Resume ends a pause. What would have come during the pause is left out: the next run
// is at the next occurrence, and with [FixedDelay] after a period. It reports false if
// the job was not paused, or if the series is over. A [Schedule] is asked on the calling
// goroutine.
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
		return true // the goroutine that made it busy starts the timer, in leave
	}
	defer j.leave()
	j.plan.resume(j)
	return true
}

// Next returns the time of the next occurrence, or the zero time if the series is over
// or the job is paused.
func (j *Job) Next() time.Time {
	j.lock()
	defer j.mu.Unlock()
	if j.over || j.paused {
		return time.Time{}
	}
	return j.next
}
