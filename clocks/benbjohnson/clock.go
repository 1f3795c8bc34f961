package clock

import (
	"context"
	"time"

	"github.com/tickless/tickless/timer"
)

// Duration is time.Duration.
type Duration = time.Duration

// A Clock has the functions of package time, and of package context, that depend on
// the time.
type Clock interface {
	After(d time.Duration) <-chan time.Time
	AfterFunc(d time.Duration, f func()) *Timer
	Now() time.Time
	Since(t time.Time) time.Duration
	Until(t time.Time) time.Duration
	Sleep(d time.Duration)
	Tick(d time.Duration) <-chan time.Time
	Ticker(d time.Duration) *Ticker
	Timer(d time.Duration) *Timer
	WithDeadline(parent context.Context, d time.Time) (context.Context, context.CancelFunc)
	WithTimeout(parent context.Context, t time.Duration) (context.Context, context.CancelFunc)
}

// New returns a Clock on the default Scheduler.
func New() Clock { return On(timer.Default()) }

// On returns a Clock on a Scheduler that follows the system's clock. It panics if s is
// nil.
func On(s *timer.Scheduler) Clock {
	if s == nil {
		panic("clock: On needs a Scheduler, got nil")
	}
	return system{timers{s}}
}

// system is a Clock that tells the system's time.
type system struct{ timers }

func (system) Now() time.Time                  { return time.Now() }
func (system) Since(t time.Time) time.Duration { return time.Since(t) }
func (system) Until(t time.Time) time.Duration { return time.Until(t) }

// timers are the methods of a Clock that a Scheduler has.
type timers struct{ s *timer.Scheduler }

func (c timers) After(d time.Duration) <-chan time.Time { return c.s.After(d) }
func (c timers) Sleep(d time.Duration)                  { c.s.Sleep(d) }
func (c timers) Tick(d time.Duration) <-chan time.Time  { return c.s.Tick(d) }

func (c timers) AfterFunc(d time.Duration, f func()) *Timer {
	return &Timer{t: c.s.AfterFunc(d, f)}
}

func (c timers) Timer(d time.Duration) *Timer {
	t := c.s.NewTimer(d)
	return &Timer{C: t.C, t: t}
}

func (c timers) Ticker(d time.Duration) *Ticker {
	t := c.s.NewTicker(d)
	return &Ticker{C: t.C, t: t}
}

func (c timers) WithDeadline(parent context.Context, d time.Time) (context.Context, context.CancelFunc) {
	return c.s.WithDeadline(parent, d)
}

func (c timers) WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return c.s.WithTimeout(parent, d)
}

// A Timer is one event. The time is sent on C, unless AfterFunc made it.
type Timer struct {
	C <-chan time.Time
	t *timer.Timer
	m *Mock // whose timer it is, or nil
}

// Stop keeps the Timer from firing. It reports whether it did so.
func (t *Timer) Stop() bool {
	if t.m != nil {
		return t.m.stop(t)
	}
	return t.t.Stop()
}

// Reset has the Timer fire after d. It reports whether it was active. If d is zero or
// less, a Mock's Timer fires when the time is next moved, by whatever duration.
func (t *Timer) Reset(d time.Duration) bool {
	if t.m != nil {
		return t.m.reset(t, d)
	}
	return t.t.Reset(d)
}

// A Ticker sends the time on C at intervals.
type Ticker struct {
	C <-chan time.Time
	t *timer.Ticker
}

// Stop ends the ticks.
func (t *Ticker) Stop() { t.t.Stop() }

// Reset gives the Ticker another period. It panics if d is not positive.
func (t *Ticker) Reset(d time.Duration) { t.t.Reset(d) }
