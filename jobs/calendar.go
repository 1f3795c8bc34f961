package jobs

import (
	"time"

	"github.com/tickless/tickless/timer"
)

// wallCheck is the longest that a job waits without looking at the wall clock.
const wallCheck = time.Minute

// setBack is how far the wall clock may be set back without occurrences coming again.
// Corrections by a time server are smaller.
const setBack = time.Minute

// calendar is the plan of a Job with a Schedule. Times are by the wall clock alone.
type calendar struct {
	schedule Schedule
	// after is the later of two: the time that the schedule was last given, and the last
	// occurrence that was run or left out. The next occurrence comes after it.
	after time.Time
	// unknown says that the schedule must be asked for the next occurrence. It stays true
	// if the schedule panics.
	unknown bool
	// wall and mono are what the clocks showed when the schedule was last asked.
	wall, mono time.Time
}

// Calendar runs f on the Scheduler's executor at the times that sched gives. It leaves
// out occurrences that come while a run is under way, or that have passed when sched is
// asked: when the clock is set forward, past any number of them, f runs once. If sched
// returns a time that is not after the one that it was given, the occurrence is one second
// after that. The series is over when sched returns the zero time.
//
// If the wall clock is set back by more than a minute, sched is asked again, with the time
// that the clock then shows, and occurrences may come again. If it is set back by less, as
// time servers do, no occurrence comes twice: the series waits until the clock has reached
// the next one. The job's timer fires at least once a minute, to notice such changes.
//
// sched is asked first on the calling goroutine and then on the executor, never by two
// goroutines at once. If it panics there, when a run begins, f runs all the same. The
// panic goes where f's panics go, and sched is asked again a minute later; until then
// [Job.Next] returns the last time that it gave.
//
// The error is [timer.ErrClosed] or [timer.ErrTooManyPending], and then f never runs.
// Calendar panics if s, sched or f is nil.
func Calendar(s *timer.Scheduler, sched Schedule, f func()) (*Job, error) {
	if s == nil || sched == nil || f == nil {
		panic("jobs: Calendar with a nil Scheduler, Schedule or func")
	}
	c := &calendar{schedule: sched, mono: s.Now(), wall: s.Wall()}
	j := &Job{s: s, f: f, plan: c, next: sched.Next(c.wall).Round(0)}
	c.after = c.wall
	return start(j)
}

func (c *calendar) look(j *Job) bool {
	now := c.read(j)
	if c.unknown {
		c.ask(j, now)
		return false
	}
	return !j.next.After(now)
}

func (c *calendar) advance(j *Job) { c.pass(j, c.read(j)) }

func (c *calendar) ended(j *Job) {
	failed := c.unknown
	now := c.read(j)
	switch {
	case failed: // it is asked later
	case c.unknown:
		c.ask(j, now)
	case !j.next.After(now):
		c.pass(j, now)
	}
}

func (c *calendar) resume(j *Job) { c.ask(j, c.read(j)) }

// read reads the wall clock, and notices if it was set back.
func (c *calendar) read(j *Job) time.Time {
	mono, wall := j.s.Now(), j.s.Wall()
	if back := c.wall.Add(mono.Sub(c.mono)).Sub(wall); back > setBack {
		c.unknown, c.after = true, wall // so the caller asks the schedule
	}
	return wall
}

// pass counts the next occurrence as run or left out, and asks for the one after it.
func (c *calendar) pass(j *Job, now time.Time) {
	if !c.unknown && j.next.After(c.after) {
		c.after = j.next
	}
	c.ask(j, now)
}

// ask sets the next occurrence.
func (c *calendar) ask(j *Job, now time.Time) {
	c.unknown, c.wall, c.mono = true, now, j.s.Now()
	if now.After(c.after) { // else the clock was set back a little: no occurrence comes again
		c.after = now
	}
	next := c.schedule.Next(c.after).Round(0)
	if !next.IsZero() && !next.After(c.after) {
		next = c.after.Add(time.Second)
	}
	c.unknown = false
	j.setNext(next)
}

func (c *calendar) wait(j *Job) time.Duration {
	if c.unknown {
		return wallCheck
	}
	return min(j.next.Sub(j.s.Wall()), wallCheck)
}
