package jobs

import (
	"time"

	"github.com/tickless/tickless/timer"
)

// maxTimerDelay limits how long a job's timer waits. When the timer fires, the job
// reads the wall clock, which may have been set.
const maxTimerDelay = time.Minute

// If the wall clock is set back by more than maxSetBack, occurrences are repeated. A
// time server makes smaller corrections.
const maxSetBack = time.Minute

// calendar computes the occurrences of a Job with a Schedule.
type calendar struct {
	schedule Schedule
	// The next call of the schedule gets searchAfter, or the time of the wall clock if
	// that is later.
	searchAfter time.Time
	// nextUnknown is true if the schedule must be called to find the next occurrence.
	// It stays true if the schedule panics.
	nextUnknown bool
	// wall and mono are what the wall clock and the monotonic clock showed at the last
	// call of the schedule.
	wall, mono time.Time
}

// Calendar runs f on the Scheduler's executor at the times that sched.Next returns. It
// skips occurrences that come during a run.
//
// When the wall clock is set, the job notices within a minute:
//
//   - If the clock is set forward past several occurrences, f runs once for all of
//     them.
//   - If the clock is set back by more than a minute, occurrences come again.
//   - If the clock is set back by less, as time servers do, no occurrence comes twice.
//
// If sched.Next returns the zero time, the series ends. If it returns a time that is
// not after its argument, the next occurrence is one second after the argument.
//
// Calendar, [Job.Resume] and the executor call sched.Next, one at a time. A panic on the
// executor is handled like a panic of f, and sched.Next is called again a minute later.
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
// maxSetBack, readWall sets nextUnknown.
func (c *calendar) readWall(j *Job) time.Time {
	mono, wall := j.s.Now(), j.s.Wall()
	if setBack := c.wall.Add(mono.Sub(c.mono)).Sub(wall); setBack > maxSetBack {
		c.nextUnknown, c.searchAfter = true, wall // the caller then calls the schedule
	}
	return wall
}

// findNext replaces j.next, an occurrence that is run or skipped, by the occurrence
// after it.
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
