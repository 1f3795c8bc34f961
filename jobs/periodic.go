package jobs

import (
	"fmt"
	"time"

	"github.com/tickless/tickless/timer"
)

// An Option configures [Periodic].
type Option interface{ apply(*periodicPlan) }

type option func(*periodicPlan)

func (f option) apply(p *periodicPlan) { f(p) }

// FixedDelay counts the period from the end of one run to the start of the next.
// Without it, the period counts from start to start, however long a run takes.
func FixedDelay() Option { return option(func(p *periodicPlan) { p.fixedDelay = true }) }

// FirstAfter sets when the first run comes: after d, or at once if d is zero or less. The
// default is one period.
func FirstAfter(d time.Duration) Option {
	return option(func(p *periodicPlan) { p.firstDelay = max(d, 0) })
}

// OnOverrun sets what happens to occurrences that come during a run. The default is
// [Skip]. It has no effect with [FixedDelay]. It panics if o is not [Skip], [Burst] or
// [Delay].
func OnOverrun(o Overrun) Option {
	if o > Delay {
		panic(fmt.Sprintf("jobs: OnOverrun: must be Skip, Burst or Delay, got %d", o))
	}
	return option(func(p *periodicPlan) { p.overrun = o })
}

// Overrun is what happens to missed occurrences: those that come during a run, or
// before a late run begins.
type Overrun uint8

const (
	// Skip drops the missed occurrences. The next run is at the next regular time.
	Skip Overrun = iota
	// Burst makes the missed runs one right after the other. Later runs are at their
	// regular times.
	Burst
	// Delay makes one run for all missed occurrences, as soon as the present run has
	// ended. The next run is one period later.
	Delay
)

// periodicPlan computes the occurrences of a Job with a period.
type periodicPlan struct {
	period     time.Duration
	firstDelay time.Duration // the delay of the first run
	fixedDelay bool
	overrun    Overrun

	checkedAt time.Time // when isDue was last called
}

// Periodic runs f repeatedly on the Scheduler's executor, at a fixed rate. The first
// run is after one period. Options change both.
//
// The error is [timer.ErrClosed] or [timer.ErrTooManyPending], and then f never runs.
// Periodic panics if s or f is nil, or if period is not positive.
func Periodic(s *timer.Scheduler, period time.Duration, f func(), opts ...Option) (*Job, error) {
	if s == nil || f == nil {
		panic("jobs: Periodic with a nil Scheduler or func")
	}
	if period <= 0 {
		panic(fmt.Sprintf("jobs: Periodic: the period must be positive, got %v", period))
	}
	p := &periodicPlan{period: period, firstDelay: period}
	for i, o := range opts {
		if o == nil {
			panic(fmt.Sprintf("jobs: Periodic: option %d is nil", i+1))
		}
		o.apply(p)
	}
	return startJob(&Job{s: s, f: f, plan: p, next: s.Now().Add(p.firstDelay)})
}

func (p *periodicPlan) isDue(j *Job) bool {
	p.checkedAt = j.s.Now()
	return !p.checkedAt.Before(j.next)
}

func (p *periodicPlan) beforeRun(j *Job) {
	switch late := p.checkedAt.Sub(j.next); {
	case p.fixedDelay, p.overrun == Delay && late >= p.period:
		j.setNext(p.checkedAt.Add(p.period))
	case p.overrun == Skip:
		p.skipMissed(j, p.checkedAt)
	default:
		j.setNext(j.next.Add(p.period))
	}
}

func (p *periodicPlan) afterRun(j *Job) {
	now := j.s.Now()
	switch {
	case p.fixedDelay:
		j.setNext(now.Add(p.period))
	case p.overrun == Burst, now.Before(j.next):
	case p.overrun == Delay:
		j.setNext(now)
	default:
		p.skipMissed(j, now)
	}
}

func (p *periodicPlan) resume(j *Job) {
	now := j.s.Now()
	if p.fixedDelay {
		j.setNext(now.Add(p.period))
	} else if !now.Before(j.next) {
		p.skipMissed(j, now)
	}
}

// skipMissed moves the next occurrence, which has passed, to the first one after now.
func (p *periodicPlan) skipMissed(j *Job, now time.Time) {
	periods := now.Sub(j.next) / p.period
	j.setNext(j.next.Add(periods * p.period).Add(p.period))
}

func (p *periodicPlan) timerDelay(j *Job) time.Duration { return j.next.Sub(j.s.Now()) }
