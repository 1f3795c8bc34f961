package timer

import (
	"fmt"
	"time"
)

// An EveryOption changes how [Scheduler.Every] repeats.
type EveryOption interface{ applyEvery(*every) }

type everyOption func(*every)

func (f everyOption) applyEvery(e *every) { f(e) }

// FixedDelay counts the period from the end of one run to the start of the next, as
// the JDK's scheduleWithFixedDelay does. Without it the period counts from one start
// to the next, however long a run takes.
func FixedDelay() EveryOption { return everyOption(func(e *every) { e.fixedDelay = true }) }

// FirstAfter makes the first run come after d, at once if d is zero or less. The
// default is one period.
func FirstAfter(d time.Duration) EveryOption { return everyOption(func(e *every) { e.first = d }) }

// OnOverrun says what becomes of occurrences that come while a run is under way. The
// default is [Skip]. With [FixedDelay] there are none. OnOverrun panics if o is none of
// [Skip], [Burst] and [Delay].
func OnOverrun(o Overrun) EveryOption {
	if o > Delay {
		panic(fmt.Sprintf("timer: OnOverrun: must be Skip, Burst or Delay, got %d", o))
	}
	return everyOption(func(e *every) { e.overrun = o })
}

// Overrun says what becomes of occurrences that come while a run is under way, or that
// the process was too late for. The names are those of tokio's MissedTickBehavior.
type Overrun uint8

const (
	// Skip leaves them out. The next run is at the next occurrence: the phase is
	// kept.
	Skip Overrun = iota
	// Burst makes up for them: they run one right after the other until none is
	// owed. The phase is kept.
	Burst
	// Delay runs once as soon as the run under way has ended, and counts the
	// periods from there: the phase is lost.
	Delay
)

// every is the plan of a Job with a period.
type every struct {
	// Fixed.

	period     time.Duration
	first      time.Duration
	fixedDelay bool
	overrun    Overrun

	// Guarded by the Job's shard's lock.

	next int64
	// owed counts the runs to be made as soon as the one under way ends.
	owed int64
}

// Every runs f again and again, with the given period: the first time after one
// period, and then at a fixed rate from there. See [EveryOption] for other ways.
// A Job counts as one pending timer until it is over. The error is [ErrClosed] or
// [ErrTooManyPending], and then f never runs. Every panics if period is not positive or
// f is nil.
func (s *Scheduler) Every(period time.Duration, f func(), opts ...EveryOption) (*Job, error) {
	mustBePositive("Every", period)
	if f == nil {
		panic("timer: Every with a nil func")
	}
	e := &every{period: period, first: period}
	for i, o := range opts {
		if o == nil {
			panic(fmt.Sprintf("timer: Every: option %d is nil", i+1))
		}
		o.applyEvery(e)
	}
	e.next = deadlineAfter(s.now(), max(e.first, 0))
	return s.startJob(f, e, e.first)
}

func (e *every) occurLocked(j *Job, at moment) (next int64, due bool) {
	this := e.next
	e.next = nextInPhase(this, e.period, at.now)
	late := (at.now - this) / int64(e.period) // occurrences after this one
	due = true
	switch {
	case e.fixedDelay:
		// The timer only watches over a run that it does not time.
		due = j.state != running
	case e.overrun == Burst && j.state != idle:
		e.owed += 1 + max(late, 0)
		due = j.state == submitted
	case e.overrun == Burst:
		e.owed += max(late, 0)
	case j.state == running:
		due = false
		if e.overrun == Delay {
			e.owed = 1
		}
	case e.overrun == Delay && late > 0:
		e.next = deadlineAfter(at.now, e.period)
	}
	return e.next, due
}

func (e *every) begun(*Job) {}

func (e *every) ended(j *Job) {
	sh := j.sh
	now := sh.s.now()
	sh.mu.Lock()
	defer sh.unlock()
	j.state = idle
	if j.over || sh.closed {
		return
	}
	if e.fixedDelay || e.owed > 0 && e.overrun == Delay {
		e.next = deadlineAfter(now, e.period)
		j.moveLocked(now, e.period)
	}
	if e.owed > 0 {
		e.owed--
		j.againLocked(submitted)
	}
}

func (e *every) nextLocked(s *Scheduler) time.Time { return s.at(e.next) }
