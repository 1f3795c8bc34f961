package timer

import (
	"time"

	"github.com/tickless/tickless/clock"
)

// A Schedule says when something is to happen, by the wall clock. The schedules
// of robfig/cron are such.
type Schedule interface {
	// Next returns the first time after t, or the zero time if there is none.
	Next(t time.Time) time.Time
}

// watch is how long a Job waits at most without looking at the wall clock.
const watch = time.Minute

// calendar is the plan of a Job with a Schedule.
type calendar struct {
	schedule Schedule

	// next is guarded by the Job's shard's lock: the next occurrence, by the wall
	// clock alone.
	next time.Time
}

// Schedule runs f at the times that sched gives. Occurrences that come while a
// run is under way are left out, as are those that have passed when sched is
// asked. A time that is not after the one that sched was given is due at once,
// but no more than once a second. The series is over when sched returns the zero
// time.
//
// If the wall clock is set, that is noticed within a minute: the timer fires at
// least once a minute to look, as long as the Job is pending.
//
// sched is asked on the calling goroutine first, and then on the executor, never
// by two goroutines at once. If it panics there, it is asked again a minute
// later. Schedule panics if sched or f is nil. On a closed Scheduler, or on one
// with too many pending timers, the Job is over at once, and counted in Stats as
// rejected. A Job counts as one pending timer until it is over.
func (s *Scheduler) Schedule(sched Schedule, f func()) *Job {
	if sched == nil || f == nil {
		panic("timer: Schedule with a nil Schedule or func")
	}
	now := s.wall()
	c := &calendar{schedule: sched, next: sched.Next(now).Round(0)}
	if c.next.IsZero() {
		return &Job{f: f, plan: c, sh: s.shards[0], over: true}
	}
	return s.startJob(f, c, min(c.next.Sub(now), watch))
}

// wall reads the wall clock, as a time without a monotonic reading, which would
// not follow when the clock is set.
func (s *Scheduler) wall() time.Time {
	if c, ok := s.clock.(clock.Wall); ok {
		return c.Wall()
	}
	return s.clock.Now().Round(0)
}

func (c *calendar) occurLocked(j *Job, at moment) (next int64, due bool) {
	wait := c.next.Sub(j.sh.s.wall())
	if wait > 0 {
		return deadlineAfter(at.now, min(wait, watch)), false
	}
	// The run asks for the next time, which is the user's code, and moves the
	// timer. Should the executor refuse it, this is when to try again.
	return deadlineAfter(at.now, watch), j.state != running
}

func (c *calendar) begun(j *Job) { c.ask(j) }

// ended asks again if the next occurrence has passed during the run.
func (c *calendar) ended(j *Job) {
	defer func() {
		j.sh.mu.Lock()
		j.state = idle
		j.sh.unlock()
	}()
	c.ask(j)
}

// ask gets the next occurrence, if the one that is known has passed, and sets
// the timer for it.
func (c *calendar) ask(j *Job) {
	s := j.sh.s
	mono, now := s.now(), s.wall()
	j.sh.mu.Lock()
	known := c.next
	over := j.over
	j.sh.mu.Unlock()
	if over || known.After(now) {
		return
	}
	next := c.schedule.Next(now).Round(0)
	if !next.IsZero() && !next.After(now) {
		next = now.Add(time.Second)
	}
	j.sh.mu.Lock()
	defer j.sh.unlock()
	if next.IsZero() {
		j.endLocked()
		return
	}
	c.next = next
	j.moveLocked(mono, min(next.Sub(now), watch))
}

func (c *calendar) nextLocked(*Scheduler) time.Time { return c.next }
