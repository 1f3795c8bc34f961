package timertest

import (
	"container/heap"
	"math"
	"sync"
	"time"

	"github.com/tickless/tickless/clock"
)

// A Clock is a virtual clock: it moves only when a test advances it. Make one with
// [NewClock].
type Clock struct {
	maxTime time.Time // the latest time that the clock can show

	mu sync.Mutex
	// All below is guarded by mu.

	now time.Time // has a monotonic reading if the start has one: so only moveLocked changes it
	// wallAheadBy is how far the time of day is ahead of now.
	wallAheadBy time.Duration
	lastSeq     uint64 // numbers the settings of alarms, to order alarms of equal moments
	alarms      alarmHeap
	// isAdvancing is true while Advance, AdvanceTo or Suspend runs.
	isAdvancing bool
}

var (
	_ clock.Clock = (*Clock)(nil)
	_ clock.Wall  = (*Clock)(nil)

	_ clock.MomentAlarm = (*alarm)(nil)
)

// NewClock returns a clock whose time is start. Its later times have a monotonic reading if
// start has one. It can show times within 292 years of start, the range of a [time.Duration].
func NewClock(start time.Time) *Clock {
	return &Clock{now: start, maxTime: start.Add(math.MaxInt64)}
}

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Wall returns the time of day, without a monotonic reading. It equals Now until SetWall is
// called.
func (c *Clock) Wall() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now.Add(c.wallAheadBy).Round(0)
}

// SetWall sets the time of day, which then advances from t. It affects jobs that run by
// the wall clock, but not timers that were started with a duration.
func (c *Clock) SetWall(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wallAheadBy = t.Round(0).Sub(c.now)
}

// Advance moves the clock by d. It calls the function of each alarm that becomes due, at
// the alarm's moment, and returns when all of these functions have returned. Advance(0)
// runs what is due now.
//
// If another goroutine starts a timer during Advance, that timer may fire only at the
// next Advance. So may other timers that are due at the same tick.
//
// Advance panics if d is negative, if the clock cannot show the time (see [NewClock]), or
// if another Advance is running. An alarm's function must not call Advance.
func (c *Clock) Advance(d time.Duration) {
	if d < 0 {
		panic("timertest: Advance: the duration must not be negative, got " + d.String())
	}
	c.mu.Lock()
	c.advanceAndUnlock(c.now.Add(d), false)
}

// Suspend is like Advance, but moves the clock in one step, as if the machine had slept.
// Alarms that became due in between go off late, at the new time.
func (c *Clock) Suspend(d time.Duration) {
	if d < 0 {
		panic("timertest: Suspend: the duration must not be negative, got " + d.String())
	}
	c.mu.Lock()
	c.advanceAndUnlock(c.now.Add(d), true)
}

// AdvanceTo is like Advance, to time t. It panics if t is before the clock's time.
func (c *Clock) AdvanceTo(t time.Time) {
	c.mu.Lock()
	if t.Before(c.now) {
		defer c.mu.Unlock()
		panic("timertest: AdvanceTo: the time must not be before the clock's, got " + t.String())
	}
	c.advanceAndUnlock(t, false)
}

// advanceAndUnlock moves the clock to target and unlocks mu. Each due alarm goes off at
// its own moment or, if inOneStep is true, at target.
func (c *Clock) advanceAndUnlock(target time.Time, inOneStep bool) {
	if c.isAdvancing {
		c.mu.Unlock()
		panic("timertest: Advance: another Advance is running")
	}
	if target.After(c.maxTime) {
		c.mu.Unlock()
		panic("timertest: Advance: the clock can show times within 292 years of its start, not " + target.String())
	}
	c.isAdvancing = true
	if inOneStep {
		c.moveLocked(target)
	}
	// If a function panics, or ends the goroutine as t.FailNow does, the clock stays
	// usable and keeps the time it has reached.
	holdsLock := true
	defer func() {
		if !holdsLock {
			c.mu.Lock()
		}
		c.isAdvancing = false
		c.mu.Unlock()
	}()
	for len(c.alarms) > 0 && !c.alarms[0].when.After(target) {
		a := heap.Pop(&c.alarms).(*alarm)
		if a.when.After(c.now) {
			c.moveLocked(a.when)
		}
		c.mu.Unlock()
		holdsLock = false
		a.f()
		c.mu.Lock()
		holdsLock = true
	}
	c.moveLocked(target)
}

func (c *Clock) moveLocked(t time.Time) { c.now = c.now.Add(t.Sub(c.now)) }

// Next returns the moment of the next alarm. It reports false if no alarm is set.
func (c *Clock) Next() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.alarms) == 0 {
		return time.Time{}, false
	}
	return c.alarms[0].when, true
}

// NewAlarm returns an alarm that is not yet set. Advance calls f when it reaches the
// alarm's moment.
func (c *Clock) NewAlarm(f func()) clock.Alarm {
	return &alarm{clock: c, f: f, heapIndex: notInHeap}
}
