package jobs

import (
	"context"
	"sync"
	"time"

	"github.com/tickless/tickless/timer"
)

// A Job runs a function repeatedly: see [Periodic] and [Calendar]. While it waits for
// its next run, it is one pending timer of its Scheduler.
//
// If the Scheduler is closed, the series ends after the present run. Next may still
// return a time, and Stop, Pause and Resume may still report true.
type Job struct {
	// These fields are set once.

	s      *timer.Scheduler
	f      func()
	plan   plan
	onFire func() // the method value j.fire, made once
	// done is closed when the series is over and no run is in progress.
	done chan struct{}

	mu sync.Mutex

	// mu guards the fields below.

	// busy is true while a goroutine runs the function or calls the plan. Only that
	// goroutine uses the plan and sets next.
	busy bool
	// next is the next occurrence, or the zero time if there is none.
	next         time.Time
	ended        bool
	paused       bool
	runRequested bool // by RunNow; the run has not begun

	// handle is the job's timer. If Start fails because too many timers are pending,
	// fallbackTimer is the job's timer instead.
	handle        timer.Handle
	fallbackTimer *timer.Timer
}

// # A job's life
//
// While a job waits, its timer is pending. When the timer fires, the job becomes busy:
//
//   1. If an occurrence is due, the job finds the next one.
//   2. If an occurrence is due, or RunNow was called, the job's function runs.
//   3. The job handles the occurrences that came during the run.
//   4. The job sets its timer for the next occurrence, and is no longer busy.
//
// If Pause, Stop or RunNow comes while the timer fires, the timer may fire once too
// often. Then nothing runs.

// A plan computes the occurrences of a job: periodic or calendar. All its methods
// except timerDelay are called while the job is busy but not locked, because they may
// call the user's Schedule.
type plan interface {
	// isDue reads the clock and reports whether an occurrence is due.
	isDue(*Job) bool
	// beforeRun sets the next occurrence, just before the due one runs.
	beforeRun(*Job)
	// afterRun handles the occurrences that came during the run that has just ended.
	afterRun(*Job)
	// resume sets the next occurrence after a pause.
	resume(*Job)
	// timerDelay returns the delay after which isDue must be called. The job is locked.
	timerDelay(*Job) time.Duration
}

// startJob starts the timer of a new job. The caller has set the next occurrence.
func startJob(j *Job) (*Job, error) {
	j.onFire, j.done = j.fire, make(chan struct{})
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.next.IsZero() {
		j.endSeriesLocked()
		return j, nil
	}
	var err error
	if j.handle, err = j.s.Start(j.plan.timerDelay(j), j.onFire); err != nil {
		return nil, err
	}
	return j, nil
}

// fire runs when the timer fires.
func (j *Job) fire() {
	paused, runNow, ok := j.becomeBusy()
	if !ok {
		return
	}
	defer j.becomeIdle()
	isDue := false
	defer func() { // deferred, so that the run happens even if the plan panics
		if isDue || runNow {
			j.runFunc()
		}
	}()
	if isDue = !paused && j.plan.isDue(j); isDue {
		j.plan.beforeRun(j)
	}
}

// runFunc calls the job's function.
func (j *Job) runFunc() {
	defer func() { // also if f panics or ends its goroutine
		if !j.hasEnded() {
			j.plan.afterRun(j)
		}
	}()
	j.f()
}

func (j *Job) hasEnded() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ended
}

// becomeBusy makes the job busy. If nothing can run now, it does nothing and ok is false.
func (j *Job) becomeBusy() (paused, runNow, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ended || j.busy || j.paused && !j.runRequested {
		return false, false, false
	}
	runNow, j.runRequested = j.runRequested, false
	j.busy = true
	return j.paused, runNow, true
}

// becomeIdle ends the busy state and starts the timer for the next run.
func (j *Job) becomeIdle() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.busy = false
	switch {
	case j.ended:
		close(j.done)
	case j.runRequested:
		j.setTimerLocked(0)
	case !j.paused:
		j.setTimerLocked(j.plan.timerDelay(j))
	}
}

// setTimerLocked sets the timer to fire after d. It replaces an earlier setting.
func (j *Job) setTimerLocked(d time.Duration) {
	j.stopTimerLocked()
	var err error
	switch j.handle, err = j.s.Start(d, j.onFire); {
	case err == nil:
	case err == timer.ErrClosed:
		j.endSeriesLocked()
	case j.fallbackTimer == nil:
		j.fallbackTimer = j.s.AfterFunc(d, j.onFire) // AfterFunc cannot be refused
	default:
		j.fallbackTimer.Reset(d)
	}
}

func (j *Job) stopTimerLocked() {
	j.handle.Stop()
	if j.fallbackTimer != nil {
		j.fallbackTimer.Stop()
	}
}

// endSeriesLocked ends the series.
func (j *Job) endSeriesLocked() {
	j.ended = true
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
	if j.ended {
		return
	}
	if j.next = t; t.IsZero() {
		j.endSeriesLocked()
	}
}

// lock locks j. It panics if j is a zero Job.
func (j *Job) lock() {
	if j.s == nil {
		panic("jobs: a Job that was not made by Periodic or Calendar")
	}
	j.mu.Lock()
}

// Stop ends the series: no run begins afterwards. It does not wait for a run in
// progress. It reports false if the series was already over.
func (j *Job) Stop() bool {
	j.lock()
	defer j.mu.Unlock()
	if j.ended {
		return false
	}
	j.endSeriesLocked()
	return true
}

// StopWait ends the series, and waits for a run in progress. If ctx ends first, it
// returns the error of ctx. If the job's own function calls StopWait, it waits until
// ctx ends.
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

// RunNow makes one extra run, even if the job is paused. It does not wait for the run,
// and lets a run in progress end first. Several calls before the run begins make only
// one run. RunNow reports false if the series is over.
func (j *Job) RunNow() bool {
	j.lock()
	defer j.mu.Unlock()
	if !j.ended && !j.runRequested {
		j.runRequested = true
		if !j.busy {
			j.setTimerLocked(0)
		}
	}
	return !j.ended
}

// Pause suspends the series until Resume. A run in progress continues, and RunNow still
// works. Pause reports false if the job was already paused, or if the series is over.
func (j *Job) Pause() bool {
	j.lock()
	defer j.mu.Unlock()
	if j.ended || j.paused {
		return false
	}
	j.paused = true
	if !j.runRequested {
		j.stopTimerLocked()
	}
	return true
}

// Resume ends a pause. Occurrences that came during the pause are skipped. With
// [FixedDelay], the next run is one period later. Resume reports false if the job was
// not paused, or if the series is over.
func (j *Job) Resume() bool {
	j.lock()
	if j.ended || !j.paused {
		j.mu.Unlock()
		return false
	}
	j.paused = false
	wasBusy := j.busy
	j.busy = true
	j.mu.Unlock()
	if wasBusy {
		return true // the goroutine that made the job busy starts the timer, in becomeIdle
	}
	defer j.becomeIdle()
	j.plan.resume(j)
	return true
}

// Next returns the time of the next occurrence. It returns the zero time if the series is
// over or the job is paused.
func (j *Job) Next() time.Time {
	j.lock()
	defer j.mu.Unlock()
	if j.ended || j.paused {
		return time.Time{}
	}
	return j.next
}
