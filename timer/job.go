package timer

import (
	"time"

	"github.com/tickless/tickless/timingwheel"
)

// A Job is a function that runs again and again: see [Scheduler.Every] and
// [Scheduler.Schedule]. Runs of one Job never overlap, and a run that panics does
// not end the series.
type Job struct {
	node
	f    func()
	sh   *shard // home, fixed
	plan plan

	// All below is guarded by sh.mu.

	// id is the Job's timer, pending until the Job is over.
	id timingwheel.ID
	// over: the Job was stopped or its schedule has ended, or it never started.
	over  bool
	state jobState
	// refused is how many callbacks the executor had refused when the run was
	// submitted.
	refused uint64
}

// # The states of a Job
//
//	         an occurrence           the executor             it returns
//	idle ──────────────────▶ submitted ───────────▶ running ─────────────▶ idle
//
// The timer does not wait for the run: it is started anew at each occurrence,
// under the lock. So the series goes on even if the executor refuses a run: an
// occurrence that finds the Job submitted, and callbacks refused since, submits
// it once more. Of two submissions the first that comes to run finds the Job
// submitted, and the other does nothing. (A Job with a Schedule has one state
// more: looking.)
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

// startJob starts a Job's timer to fire first after d.
func (s *Scheduler) startJob(f func(), p plan, d time.Duration) *Job {
	now := s.now() // it may panic, and so comes before the lock
	j := &Job{f: f, plan: p, sh: s.lockShard()}
	j.owner = j
	j.sh.restartLocked(now, &j.id, d, nodePayload(&j.node), tagNode)
	// If it was due at once it has fired and started itself anew.
	j.over = !j.sh.wheel.Contains(j.id)
	j.sh.unlock()
	return j
}

// Stop ends the series. It reports false if it was over already. It does not
// wait for a run that is under way; there is no other after it. It may be called
// from inside the Job's function.
func (j *Job) Stop() bool {
	j.sh.mu.Lock()
	defer j.sh.unlock()
	return j.endLocked()
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
	j.sh.mu.Lock()
	defer j.sh.mu.Unlock()
	if j.over || j.sh.closed {
		return time.Time{}
	}
	return j.plan.nextLocked(j.sh.s)
}

func (j *Job) expireLocked(sh *shard, at moment) func() {
	next, due := j.plan.occurLocked(j, at)
	j.id = sh.rearmLocked(next, &j.node)
	if !due || j.state == submitted && j.refused == sh.s.hand.dropped.Load() {
		return nil
	}
	return j.submitLocked()
}

// submitLocked returns the run for the executor.
func (j *Job) submitLocked() func() {
	j.state = submitted
	j.refused = j.sh.s.hand.dropped.Load()
	return j.run
}

// againLocked submits a run that is not an occurrence of the timer's.
func (j *Job) againLocked() { j.sh.s.hand.soonLocked(j.sh, j.submitLocked()) }

// moveLocked has the timer fire next after d, instead of when it would.
func (j *Job) moveLocked(now int64, d time.Duration) {
	if !j.over {
		j.sh.resetLocked(now, j.id, max(d, 1))
	}
}

// enter makes a job that is in state from, and not over, running.
func (j *Job) enter(from jobState) bool {
	j.sh.mu.Lock()
	defer j.sh.mu.Unlock()
	if j.state != from || j.over {
		return false
	}
	j.state = running
	return true
}

func (j *Job) run() {
	if !j.enter(submitted) {
		return
	}
	// Deferred, for a run that panics or ends its goroutine.
	defer j.plan.ended(j)
	j.plan.begun(j)
	j.f()
}

func (j *Job) pendingFunc() func() { return j.f }
func (j *Job) abandon()            {}
