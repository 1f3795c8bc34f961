package jobs

import (
	"time"

	"github.com/tickless/tickless/timer"
)

// maxTimerDelay limits how long a job's timer waits. When the timer fires, the job
// reads the wall clock again.
const maxTimerDelay = time.Minute

// If the wall clock is set back by more than maxSetBack, occurrences are repeated. A
// time server makes smaller corrections.
const maxSetBack = time.Minute

// calendar is the plan of a Job with a Schedule.
type calendar struct {
	schedule Schedule
	// The next occurrence must be after searchAfter. It is the last occurrence that was
	// run or skipped, or the time of the last call of the schedule, whichever is later.
	searchAfter time.Time
	// nextUnknown is true if the schedule must be called to find the next occurrence.
	// It stays true if the schedule panics.
	nextUnknown bool
	// wall and mono are what the wall clock and the monotonic clock showed at the last
	// call of the schedule.
	wall, mono time.Time
}

// Calendar runs f on the Scheduler's executor at the times that sched.Next returns. It
// skips occurrences that come during a run. It also skips occurrences that have passed
// when sched.Next is called: if the clock is set forward past many, f runs once.
//
// If sched.Next returns a time that is not after its argument, the next occurrence is
// one second after the argument. If it returns the zero time, the series ends.
//
// If the wall clock is set back by more than a minute, Calendar calls sched.Next with
// the new time, and occurrences come again. If the clock is set back by less, as time
// servers do, no occurrence comes twice: the series waits until the clock has reached
// the next occurrence. To notice changes, the job's timer fires at least once a minute.
//
// The first call of sched.Next is on the calling goroutine. Later calls are on the
// executor or in [Job.Resume], one at a time. If sched.Next panics when a run begins, f
// runs anyway. The panic is treated as a panic of f, and sched.Next is called again a
// minute later. Until then [Job.Next] returns the last known time.
//
// The error is [timer.ErrClosed] or [timer.ErrTooManyPending], and then f never runs.
// Calendar panics if s, sched or f is nil.
func Calendar(s *timer.Scheduler, sched Schedule, f func()) (*Job, error) {
	if s == nil || sched == nil || f == nil {
		panic("jobs: Calendar with a nil Scheduler, Schedule or func")
	}
	c := &calendar{schedule: sched, mono: s.Now(), wall: s.Wall()}
	j := &Job{s: s, f: f, plan: c, next: sched.Next(c.wall).Round(0)}
	c.searchAfter = c.wall
	return start(j)
}

func (c *calendar) due(j *Job) bool {
	now := c.readWall(j)
	if c.nextUnknown {
		c.callSchedule(j, now)
		return false
	}
	return !j.next.After(now)
}

func (c *calendar) advance(j *Job) { c.findNext(j, c.readWall(j)) }

func (c *calendar) afterRun(j *Job) {
	panicked := c.nextUnknown
	now := c.readWall(j)
	switch {
	case panicked: // the schedule is called again in a minute
	case c.nextUnknown:
		c.callSchedule(j, now)
	case !j.next.After(now):
		c.findNext(j, now)
	}
}

func (c *calendar) resume(j *Job) { c.callSchedule(j, c.readWall(j)) }

// readWall returns the time of the wall clock. If the clock was set back by more than
// maxSetBack, readWall makes the next occurrence unknown.
func (c *calendar) readWall(j *Job) time.Time {
	mono, wall := j.s.Now(), j.s.Wall()
	if setBack := c.wall.Add(mono.Sub(c.mono)).Sub(wall); setBack > maxSetBack {
		c.nextUnknown, c.searchAfter = true, wall // so the caller calls the schedule
	}
	return wall
}

// findNext counts the next occurrence as run or skipped, and finds the one after it.
func (c *calendar) findNext(j *Job, now time.Time) {
	if !c.nextUnknown && j.next.After(c.searchAfter) {
		c.searchAfter = j.next
	}
	c.callSchedule(j, now)
}

// callSchedule calls the schedule and sets the next occurrence.
func (c *calendar) callSchedule(j *Job, now time.Time) {
	c.nextUnknown, c.wall, c.mono = true, now, j.s.Now()
	if now.After(c.searchAfter) { // otherwise the clock was set back a little: no occurrence is repeated
		c.searchAfter = now
	}
	next := c.schedule.Next(c.searchAfter).Round(0)
	if !next.IsZero() && !next.After(c.searchAfter) {
		next = c.searchAfter.Add(time.Second)
	}
	c.nextUnknown = false
	j.setNext(next)
}

func (c *calendar) wait(j *Job) time.Duration {
	if c.nextUnknown {
		return maxTimerDelay
	}
	return min(j.next.Sub(j.s.Wall()), maxTimerDelay)
}
