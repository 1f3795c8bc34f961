package timertest

import (
	"container/heap"
	"math"
	"sync"
	"time"

	"github.com/tickless/tickless/clock"
)

// A Clock is a virtual clock: it moves only when told to. Make one with
// [NewClock].
type Clock struct {
	last time.Time // the last that it can show

	mu sync.Mutex
	// All below is guarded by mu.

	now time.Time
	// ahead is how far the time of day is ahead of now.
	ahead  time.Duration
	seq    uint64 // numbers the settings of alarms, to order those of a moment
	alarms alarmHeap
	// advancing: an Advance is under way.
	advancing bool
}

var (
	_ clock.Clock = (*Clock)(nil)
	_ clock.Wall  = (*Clock)(nil)

	_ clock.MomentAlarm = (*alarm)(nil)
)

// NewClock returns a clock that stands at start. It can show times within 292 years
// of start, as many as a [time.Duration] holds.
func NewClock(start time.Time) *Clock {
	// A monotonic reading would be the real clock's.
	now := start.Round(0)
	return &Clock{now: now, last: now.Add(math.MaxInt64)}
}

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Wall returns the time of day: the clock's time, unless SetWall has changed it.
func (c *Clock) Wall() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now.Add(c.ahead)
}

// SetWall sets the time of day, as an administrator or a time server does. It goes on
// from there. Timers that were started with a duration do not follow it. Jobs that
// run by the wall clock do.
func (c *Clock) SetWall(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead = t.Sub(c.now)
}

// Advance moves the clock by d. On the way it runs what becomes due, each at its
// moment, and returns when all of that has returned. A d of zero runs what is due
// now. A timer that is being started on another goroutine at the same time, and timers of
// the same tick, may be left for the next Advance. Advance panics if d is negative, if
// the clock cannot show the time (see [NewClock]), or if another Advance is running; so a
// function that Advance runs must not call it.
func (c *Clock) Advance(d time.Duration) {
	if d < 0 {
		panic("timertest: Advance: the duration must not be negative, got " + d.String())
	}
	c.mu.Lock()
	c.advanceLocked(c.now.Add(d), false)
}

// Suspend moves the clock by d as for a machine that slept, or a process that was stopped:
// what became due meanwhile runs late, at the moment at which Suspend ends. Otherwise it is
// as Advance.
func (c *Clock) Suspend(d time.Duration) {
	if d < 0 {
		panic("timertest: Suspend: the duration must not be negative, got " + d.String())
	}
	c.mu.Lock()
	c.advanceLocked(c.now.Add(d), true)
}

// AdvanceTo is Advance to a time, which must not be before the clock's.
func (c *Clock) AdvanceTo(t time.Time) {
	c.mu.Lock()
	if t.Before(c.now) {
		defer c.mu.Unlock()
		panic("timertest: AdvanceTo a time that has passed: " + t.String())
	}
	c.advanceLocked(t.Round(0), false)
}

// advanceLocked moves the clock, atOnce or by what becomes due, and unlocks it.
func (c *Clock) advanceLocked(target time.Time, atOnce bool) {
	if c.advancing {
		c.mu.Unlock()
		panic("timertest: Advance: another Advance is running")
	}
	if target.After(c.last) {
		c.mu.Unlock()
		panic("timertest: Advance: the clock can show times within 292 years of its start, not " + target.String())
	}
	c.advancing = true
	if atOnce {
		c.now = target
	}
	// Also when a function panics, or ends the goroutine as t.FailNow does: the
	// clock stays usable, at the moment it had come to.
	locked := true
	defer func() {
		if !locked {
			c.mu.Lock()
		}
		c.advancing = false
		c.mu.Unlock()
	}()
	for len(c.alarms) > 0 && !c.alarms[0].when.After(target) {
		a := heap.Pop(&c.alarms).(*alarm)
		if a.when.After(c.now) {
			c.now = a.when
		}
		c.mu.Unlock()
		locked = false
		a.f()
		c.mu.Lock()
		locked = true
	}
	c.now = target
}

// Next returns the moment of the next alarm, or false if none is set. After
// advancing to it there may be another.
func (c *Clock) Next() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.alarms) == 0 {
		return time.Time{}, false
	}
	return c.alarms[0].when, true
}

// NewAlarm returns an alarm, not yet set, that calls f inside the Advance that
// reaches its moment.
func (c *Clock) NewAlarm(f func()) clock.Alarm {
	return &alarm{c: c, f: f, pos: unset}
}
