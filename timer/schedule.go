package timer

import (
	"time"

	"github.com/tickless/tickless/clock"
)

// A Schedule says when something is to happen, by the wall clock. The schedules of
// robfig/cron have this method.
type Schedule interface {
	// Next returns the first time after t, or the zero time if there is none.
	Next(t time.Time) time.Time
}

// wallCheck is how long a Job waits at most without looking at the wall clock.
const wallCheck = time.Minute

// setBack is how far the wall clock may be set back without occurrences coming
// again. Corrections by a time server are smaller.
const setBack = time.Minute

// calendar is the plan of a Job with a Schedule.
//
// The schedule is the user's code and so is asked without the lock, by whoever has
// put the Job in the state running: a run, when it begins and perhaps when it ends,
// or a question, when there is nothing to do but ask. The timer leaves out what comes
// meanwhile, and says so in gone. The Job becomes idle in the critical section that
// finds nothing gone or that sets the timer again, so there is always one of the two
// who sees to the next occurrence.
type calendar struct {
	schedule Schedule

	// All below is guarded by the Job's shard's lock. Times are by the wall clock
	// alone.

	// next is the first occurrence after done, as the schedule has it. What comes
	// up to done was run or left out.
	next, done time.Time
	// gone: there is no run of next to come any more, but the schedule has yet to
	// say what is after it.
	gone bool
	// failed: it has panicked, and is to be let alone until the timer fires.
	failed bool
}

// asking is a state that only a Job with a Schedule has: a question is submitted. An
// occurrence that comes before it is run makes it a run: the state is submitted
// then.
//
//	idle ─────▶ asking ─────▶ running ─────▶ idle
const asking = running + 1

// Repeat runs f at the times that sched gives. Occurrences that come while a run is
// under way are skipped, and so are those that have passed when sched is asked. A
// time that is not after the one that sched was given is due at once, but at most
// once a second. The series is over when sched returns the zero time.
//
// If the wall clock is set, the Job notices within a minute: while it is pending, its
// timer fires at least once a minute to look. When the clock is set forward, past any
// number of occurrences, f runs once. When it is set back to more than a minute
// before the time that sched was last given, sched is asked again, and times that
// come again have runs again. When it is set back by less, as time servers do, f runs
// for no occurrence twice: the series waits until the clock has come to the next one.
//
// sched is asked first on the calling goroutine and then on the executor, never by
// two goroutines at once. If it panics there, when a run begins, f runs all the same.
// The panic goes where f's panics go, and sched is asked again a minute later; until
// then [Job.Next] returns the last time that it gave. Repeat panics if sched or f
// is nil.
//
// A Job counts as one pending timer until it is over. The error is [ErrClosed] or
// [ErrTooManyPending], and then f never runs.
func (s *Scheduler) Repeat(sched Schedule, f func()) (*Job, error) {
	if sched == nil || f == nil {
		panic("timer: Repeat with a nil Schedule or func")
	}
	now := s.wall()
	c := &calendar{schedule: sched, next: sched.Next(now).Round(0), done: now}
	if c.next.IsZero() {
		if s.closed.Load() {
			return nil, ErrClosed
		}
		return &Job{f: f, plan: c, sh: s.shards.at(0), over: true}, nil
	}
	return s.startJob(f, c, min(c.next.Sub(now), wallCheck))
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
	now := j.sh.s.wall()
	// Whoever asks moves the timer. Should the executor refuse what is submitted
	// here, this is when to try again.
	next = deadlineAfter(at.now, wallCheck)
	wait := c.next.Sub(now)
	if wait > 0 {
		next = deadlineAfter(at.now, min(wait, wallCheck))
	}
	c.failed = false
	due = wait <= 0 && !c.gone
	switch {
	case j.state == running:
		if due {
			c.goneLocked() // ended sees it
		}
		return next, false
	case due || j.state == submitted:
		return next, true
	case c.gone || c.wasSetBackLocked(now):
		j.againLocked(asking)
	}
	return next, false
}

// goneLocked notes that next is run now, or left out.
func (c *calendar) goneLocked() {
	c.gone = true
	if c.next.After(c.done) {
		c.done = c.next
	}
}

// wasSetBackLocked reports whether next may not be the first occurrence any more.
// While the clock shows a time from done to next, it is.
func (c *calendar) wasSetBackLocked(now time.Time) bool { return c.done.Sub(now) > setBack }

func (c *calendar) begun(j *Job) {
	j.sh.mu.Lock()
	c.goneLocked()
	j.sh.mu.Unlock()
	asked := false
	defer func() {
		if !asked {
			j.f() // the schedule has panicked; the run is due nonetheless
		}
	}()
	c.ask(j, running)
	asked = true
}

// ended asks again if the next occurrence has passed during the run.
func (c *calendar) ended(j *Job) {
	now := j.sh.s.wall()
	j.sh.mu.Lock()
	// The timer may have fired since the clock was read: then it has set gone, or
	// else it will find the Job idle.
	if !c.next.After(now) {
		c.goneLocked()
	}
	if j.over || c.failed || !c.gone && !c.wasSetBackLocked(now) {
		j.state = idle
		j.sh.unlock()
		return
	}
	j.sh.mu.Unlock()
	c.ask(j, idle)
}

// ask gets the next occurrence, sets the timer for it and puts the Job in a
// state.
func (c *calendar) ask(j *Job, state jobState) {
	s := j.sh.s
	mono, now := s.now(), s.wall()
	from := now
	j.sh.mu.Lock()
	if c.done.After(now) && !c.wasSetBackLocked(now) {
		from = c.done // the clock was set back a little: nothing comes again
	}
	j.sh.mu.Unlock()

	var next time.Time
	failed := true
	defer func() {
		j.sh.mu.Lock()
		defer j.sh.unlock()
		j.state = state
		c.done, c.gone, c.failed = from, failed, failed
		switch {
		case failed:
			j.moveLocked(s.now(), wallCheck)
		case next.IsZero():
			j.endLocked()
		default:
			c.next = next
			j.moveLocked(mono, min(next.Sub(now), wallCheck))
		}
	}()
	next = c.schedule.Next(from).Round(0)
	if !next.IsZero() && !next.After(from) {
		next = from.Add(time.Second)
	}
	failed = false
}

func (c *calendar) nextLocked(*Scheduler) time.Time { return c.next }
