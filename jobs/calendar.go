package jobs

import (
	"time"

	"github.com/tickless/tickless/timer"
)

// maxTimerDelay limits how long a job's timer waits. When the timer fires, the job
// reads the wall clock, which may have been set.
const maxTimerDelay = time.Minute

// maxIgnoredSetBack is the largest correction of the wall clock that repeats no
// occurrence. A time server makes smaller ones.
const maxIgnoredSetBack = time.Minute

// calendarPlan computes the occurrences of a Job with a Schedule.
type calendarPlan struct {
	schedule Schedule
	// The next call of the schedule gets searchAfter, or the time of the wall clock if
	// that is later.
	searchAfter time.Time
	// nextUnknown is true if the schedule must be called to find the next occurrence.
	// It stays true if the schedule panics.
	nextUnknown bool
	// lastWallTime and lastMonoTime are the times of the wall clock and the monotonic
	// clock at the last call of the schedule.
	lastWallTime, lastMonoTime time.Time
}

// Calendar runs f on the Scheduler's executor at the times that sched.Next returns. It
// skips occurrences that come during a run.
//
// When the wall clock is set, the job notices within a minute:
//
//   - If the clock is set forward past several occurrences, f runs once for all of
//     them.
//   - If the clock is set back by more than a minute, occurrences come again. In the
//     first minute after Calendar, these are occurrences from before Calendar was called.
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
	c := &calendarPlan{schedule: sched, lastMonoTime: s.Now(), lastWallTime: s.Wall()}
	c.searchAfter = c.lastWallTime
	return startJob(&Job{s: s, f: f, plan: c, next: c.occurrence()})
}

func (c *calendarPlan) isDue(j *Job) bool {
	now := c.readWallClock(j)
	if c.nextUnknown {
		c.callSchedule(j, now)
		return false
	}
	return !j.next.After(now)
}

func (c *calendarPlan) beforeRun(j *Job) { c.findNext(j, c.readWallClock(j)) }

func (c *calendarPlan) afterRun(j *Job) {
	schedulePanicked := c.nextUnknown
	now := c.readWallClock(j)
	switch {
	case schedulePanicked: // the schedule is called again in a minute
	case c.nextUnknown:
		c.callSchedule(j, now)
	case !j.next.After(now):
		c.findNext(j, now)
	}
}

func (c *calendarPlan) resume(j *Job) { c.callSchedule(j, c.readWallClock(j)) }

// readWallClock returns the time of the wall clock. If the clock was set back by more
// than maxIgnoredSetBack, readWallClock sets nextUnknown.
func (c *calendarPlan) readWallClock(j *Job) time.Time {
	mono, wall := j.s.Now(), j.s.Wall()
	if setBack := c.lastWallTime.Add(mono.Sub(c.lastMonoTime)).Sub(wall); setBack > maxIgnoredSetBack {
		c.nextUnknown, c.searchAfter = true, wall // the caller then calls the schedule
	}
	return wall
}

// findNext replaces j.next, an occurrence that is run or skipped, by the occurrence
// after it.
func (c *calendarPlan) findNext(j *Job, now time.Time) {
	if !c.nextUnknown && j.next.After(c.searchAfter) {
		c.searchAfter = j.next
	}
	c.callSchedule(j, now)
}

// callSchedule calls the schedule and sets the next occurrence.
func (c *calendarPlan) callSchedule(j *Job, now time.Time) {
	c.nextUnknown, c.lastWallTime, c.lastMonoTime = true, now, j.s.Now()
	if now.After(c.searchAfter) { // otherwise the clock was set back a little: no occurrence is repeated
		c.searchAfter = now
	}
	occurrence := c.occurrence()
	c.nextUnknown = false
	j.setNext(occurrence)
}

// occurrence returns the schedule's first occurrence after searchAfter.
func (c *calendarPlan) occurrence() time.Time {
	at := c.schedule.Next(c.searchAfter).Round(0)
	if !at.IsZero() && !at.After(c.searchAfter) {
		return c.searchAfter.Add(time.Second)
	}
	return at
}

func (c *calendarPlan) timerDelay(j *Job) time.Duration {
	if c.nextUnknown {
		return maxTimerDelay
	}
	return min(j.next.Sub(j.s.Wall()), maxTimerDelay)
}
