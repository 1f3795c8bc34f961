package soak

import (
	"math/rand/v2"
	"time"

	"go.uber.org/atomic"

	"github.com/tickless/tickless/jobs"
	"github.com/tickless/tickless/timer"
)

// A series is both the function and the Schedule of a Job. The ledger has an entry for
// each time that the Schedule returns. No two methods of a series run at the same time,
// so it needs no lock.
type series struct {
	l      *ledger
	period time.Duration
	// once is true if the schedule returns only one time. Otherwise a run stops the
	// series after callsLeft more calls of Next.
	once      bool
	callsLeft int
	alive     *atomic.Int32 // number of running series
	j         atomic.Pointer[jobs.Job]

	running atomic.Bool
	// next is the result of the last call of Next. due is the previous result, until the
	// Job runs for it.
	next, due *occurrence
}

type occurrence struct {
	n  *note
	at time.Time
}

// schedules starts jobs with a Schedule.
func schedules(s *timer.Scheduler) func(*ledger, *rand.Rand, time.Duration) {
	alive := new(atomic.Int32)
	return func(l *ledger, rng *rand.Rand, longest time.Duration) {
		if alive.Load() >= 10 || l.ending.Load() {
			return
		}
		x := &series{l: l, once: rng.IntN(4) == 0, callsLeft: 1 + rng.IntN(100), alive: alive}
		x.period = 10*time.Millisecond + delay(rng, longest/4)
		alive.Inc()
		j, err := jobs.Calendar(s, x, x.run)
		if err != nil {
			l.complain("%v", err)
			return
		}
		x.j.Store(j)
	}
}

// wall reads the wall clock.
func wall() time.Time { return time.Now().Round(0) }

// Next returns the next multiple of the period after t. The Job calls Next just before it
// runs or skips the time that Next returned before.
func (x *series) Next(t time.Time) time.Time {
	if x.due != nil {
		x.due.check(x.l, "skipped")
		x.due.n.stop(func() bool { return true })
	}
	x.due, x.next = x.next, nil
	if x.once && x.due != nil {
		return time.Time{}
	}
	x.callsLeft--
	at := t.Truncate(x.period).Add(x.period)
	x.next = &occurrence{x.l.enter(at.Sub(wall())), at}
	return at
}

// check complains if the occurrence is early by the wall clock. The ledger follows
// another clock, so check sets the occurrence's moment there to now.
func (o *occurrence) check(l *ledger, what string) {
	if early := o.at.Sub(wall()); early > 0 {
		l.complain("%s %v early by the wall clock", what, early)
	}
	o.n.move(0, func() bool { return true })
}

func (x *series) run() {
	if x.running.Swap(true) {
		x.l.complain("runs overlap")
	}
	defer x.running.Store(false)
	if x.due == nil {
		x.l.complain("a run at a time that the schedule did not return")
		return
	}
	x.due.check(x.l, "run")
	x.due.n.fire()
	x.due = nil
	if x.next == nil { // the schedule has ended
		x.alive.Dec()
		return
	}
	// Only a run may stop the Job, at its end. Another goroutine could not know which
	// occurrence is running.
	j := x.j.Load()
	if j != nil && (x.callsLeft <= 0 || x.l.ending.Load()) && x.next.n.stop(j.Stop) {
		x.next = nil
		x.alive.Dec()
	}
}
