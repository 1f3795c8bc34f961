package timer

import (
	"time"

	"github.com/tickless/tickless/internal/wheel"
)

// A Job is a function that runs again and again: see [Scheduler.Every] and
// [Scheduler.Repeat]. Runs of one Job never overlap, and a run that panics does
// not end the series.
type Job struct {
	node

	// Fixed.

	f    func()
	sh   *shard // home
	plan plan
	// callback is what the executor gets: j.step, as one value, by which a
	// refusal finds the Job.
	callback func()

	// All below is guarded by sh.mu.

	// id is the Job's timer, pending until the Job is over.
	id wheel.ID
	// over: the Job was stopped or its schedule has ended, or it never started.
	over  bool
	state jobState
	// queued: the callback was submitted and has not begun. There is one at
	// most, however many occurrences come.
	queued bool
}

// # The states of a Job
//
//	         an occurrence           the executor             it returns
//	idle ──────────────────▶ submitted ───────────▶ running ─────────────▶ idle
//
// The timer does not wait for the run: it starts again at each occurrence, under the
// lock. So the series goes on even if the executor refuses a run: an occurrence that
// finds the Job submitted, and its callback refused, submits it once more. If the
// callback waits still, the occurrence adds nothing to the executor's queue. (A Job
// with a Schedule has one state more: asking.)
type jobState uint8

const (
	idle jobState = iota
	submitted
	running
)

// A plan says when a Job's occurrences are. Its methods are called with the
// shard's lock held, except for ended.
type plan interface {
	// occurLocked is called when the Job's timer has fired. It returns the moment
	// for the timer to fire next, which is after at.now, and whether a run is due.
	occurLocked(j *Job, at moment) (next int64, due bool)
	// begun and ended are called, without the lock, before and after a run.
	begun(j *Job)
	ended(j *Job)
	// nextLocked returns the time of the next occurrence.
	nextLocked(s *Scheduler) time.Time
}

// startJob starts a Job's timer to fire first after d. The error is ErrClosed or
// ErrTooManyPending.
func (s *Scheduler) startJob(f func(), p plan, d time.Duration) (*Job, error) {
	now := s.now() // it may panic, and so comes before the lock
	j := &Job{f: f, plan: p}
	j.owner, j.callback = j, j.step
	j.sh = s.lockShard()
	err := j.startLocked(now, d)
	j.sh.unlock()
	if err != nil {
		return nil, err
	}
	return j, nil
}

func (j *Job) startLocked(now int64, d time.Duration) error {
	id, err := j.sh.startLocked(now, d, nodePayload(&j.node), tagNode)
	if id != (wheel.ID{}) { // else it has fired at once, and started itself again
		j.id = id
	}
	return err
}

// Stop ends the series. It reports false if it was over already. It does not
// wait for a run that is under way; there is no other after it. It may be called
// from inside the Job's function.
func (j *Job) Stop() bool {
	j.mustBeMade()
	j.sh.mu.Lock()
	defer j.sh.unlock()
	return j.endLocked()
}

func (j *Job) mustBeMade() {
	if j.sh == nil {
		panic("timer: a Job that was not made by Every or Repeat")
	}
}

// endLocked ends the series, or reports false if it is over.
func (j *Job) endLocked() bool {
	if j.over {
		return false
	}
	j.over = true
	return j.sh.stopLocked(j.id)
}

// Next returns the time of the next occurrence, or the zero time if the series
// is over.
func (j *Job) Next() time.Time {
	j.mustBeMade()
	j.sh.mu.Lock()
	defer j.sh.mu.Unlock()
	if j.over || j.sh.closed {
		return time.Time{}
	}
	return j.plan.nextLocked(j.sh.s)
}

func (j *Job) expireLocked(sh *shard, at moment) func() {
	next, due := j.plan.occurLocked(j, at)
	j.id = sh.rearmLocked(at.now, next, &j.node)
	if !due {
		return nil
	}
	return j.submitLocked(submitted)
}

// submitLocked returns the callback for the executor, in whose turn the Job is to
// be in a state; or nil if it is queued already.
func (j *Job) submitLocked(state jobState) func() {
	j.state = state
	if j.queued {
		return nil
	}
	j.queued = true
	return j.callback
}

// againLocked submits a run that is not an occurrence of the timer's.
func (j *Job) againLocked(state jobState) {
	if f := j.submitLocked(state); f != nil {
		j.sh.s.dispatch.submitDueLocked(j.sh, f)
	}
}

// moveLocked has the timer fire next after d, instead of when it would.
func (j *Job) moveLocked(now int64, d time.Duration) {
	if !j.over {
		j.sh.resetLocked(now, j.id, max(d, 1))
	}
}

// begin makes a Job that is not over running, and returns the state that it was in.
func (j *Job) begin() (from jobState, ok bool) {
	j.sh.mu.Lock()
	defer j.sh.mu.Unlock()
	j.queued = false
	if j.over {
		return idle, false
	}
	from, j.state = j.state, running
	return from, true
}

// step is what the executor runs.
func (j *Job) step() {
	from, ok := j.begin()
	if !ok {
		return
	}
	// Deferred, for a run that panics or ends its goroutine.
	defer j.plan.ended(j)
	if from == submitted {
		j.plan.begun(j)
		j.f()
	}
}

func (j *Job) pendingFunc() func() { return j.f }
func (j *Job) abandon()            {}
