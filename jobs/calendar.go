package jobs

import (
	"time"

	"github.com/tickless/tickless/timer"
)

// wallCheck bounds how long a job waits before it reads the wall clock again.
const wallCheck = time.Minute

// maxSetBack is how far the wall clock may be set back without repeating occurrences. A
// time server makes smaller corrections.
const maxSetBack = time.Minute

// calendar is the plan of a Job with a Schedule. Times are by the wall clock alone.
type calendar struct {
	schedule Schedule
	// after is the time that the schedule was last called with, or the last occurrence
	// that was run or skipped, whichever is later. The next occurrence comes after it.
	after time.Time
	// unknown is true if the schedule must be called for the next occurrence. It stays
	// true if the schedule panics.
	unknown bool
	// wall and mono are the readings of the two clocks at the last call of the schedule.
	wall, mono time.Time
}

// Calendar runs f on the Scheduler's executor at the times that sched.Next returns. It
// skips occurrences that come during a run, or that have passed when sched.Next is
// called: if the clock is set forward, past any number of them, f runs once. If
// sched.Next returns a time that is not after its argument, the next occurrence is one
// second after the argument. If it returns the zero time, the series ends.
//
// If the wall clock is set back by more than a minute, Calendar calls sched.Next with the
// new time, and occurrences may come again. If the clock is set back by less, as time
// servers do, no occurrence comes twice: the series waits until the clock has reached the
// next one. To notice such changes, the job's timer fires at least once a minute.
//
// The first call of sched.Next is on the calling goroutine, the others are on the
// executor, one at a time. If sched.Next panics when a run begins, f runs anyway. The
// panic is treated as a panic of f, and sched.Next is called again a minute later. Until
// then [Job.Next] returns the last known time.
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

func (c *calendar) due(j *Job) bool {
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
	case failed: // wait retries in a minute
	case c.unknown:
		c.ask(j, now)
	case !j.next.After(now):
		c.pass(j, now)
	}
}

func (c *calendar) resume(j *Job) { c.ask(j, c.read(j)) }

// read reads the wall clock. If the clock was set back by more than maxSetBack, read
// makes the next occurrence unknown.
func (c *calendar) read(j *Job) time.Time {
	mono, wall := j.s.Now(), j.s.Wall()
	if setBack := c.wall.Add(mono.Sub(c.mono)).Sub(wall); setBack > maxSetBack {
		c.unknown, c.after = true, wall // so the caller calls the schedule
	}
	return wall
}

// pass records the next occurrence as run or skipped, and asks for the one after it.
func (c *calendar) pass(j *Job, now time.Time) {
	if !c.unknown && j.next.After(c.after) {
		c.after = j.next
	}
	c.ask(j, now)
}

// ask calls the schedule and sets the next occurrence.
func (c *calendar) ask(j *Job, now time.Time) {
	c.unknown, c.wall, c.mono = true, now, j.s.Now()
	if now.After(c.after) { // otherwise the clock was set back a little: no occurrence is repeated
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
