package delayqueue

import (
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/tickless/tickless/clock"
)

// A fakeClock moves only when Advance is called.
type fakeClock struct {
	reset chan struct{} // gets a token, if there is room, when an alarm is set

	mu     sync.Mutex
	now    time.Time
	alarms []*fakeAlarm
}

type fakeAlarm struct {
	c   *fakeClock
	f   func()
	at  time.Time
	set bool
}

func newFakeClock(start time.Time) *fakeClock {
	return &fakeClock{now: start, reset: make(chan struct{}, 1)}
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) NewAlarm(f func()) clock.Alarm {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &fakeAlarm{c: c, f: f}
	c.alarms = append(c.alarms, a)
	return a
}

// Advance moves the clock by d, and stops at each alarm on the way.
func (c *fakeClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	target := c.now.Add(d)
	for {
		var next *fakeAlarm
		for _, a := range c.alarms {
			if a.set && !a.at.After(target) && (next == nil || a.at.Before(next.at)) {
				next = a
			}
		}
		if next == nil {
			c.now = target
			return
		}
		c.now, next.set = next.at, false
		c.mu.Unlock()
		next.f()
		c.mu.Lock()
	}
}

func (a *fakeAlarm) Reset(d time.Duration) {
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	a.at, a.set = a.c.now.Add(d), true
	select {
	case a.c.reset <- struct{}{}:
	default:
	}
}

func (a *fakeAlarm) Stop() {
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	a.set = false
}

// A countingClock is the system's clock, or the bubble's, and counts its calls.
type countingClock struct {
	readings, resets, rings atomic.Int64
	set                     atomic.Bool // the alarm is set (one queue a clock)
	f                       func()      // the alarm's function
}

func (c *countingClock) Now() time.Time {
	c.readings.Inc()
	return time.Now()
}

func (c *countingClock) NewAlarm(f func()) clock.Alarm {
	c.f = f
	return countingAlarm{c, clock.System().NewAlarm(func() {
		c.rings.Inc()
		c.set.Store(false)
		f()
	})}
}

type countingAlarm struct {
	c *countingClock
	a clock.Alarm
}

func (a countingAlarm) Reset(d time.Duration) {
	a.c.resets.Inc()
	a.c.set.Store(true)
	a.a.Reset(d)
}

func (a countingAlarm) Stop() {
	a.c.set.Store(false)
	a.a.Stop()
}
