package timer

import (
	"sync"
	"time"
)

// defaultScheduler is made when it is first needed, and never closed.
var defaultScheduler = sync.OnceValue(func() *Scheduler { return New() })

// Default returns the Scheduler that the package-level functions use. It is made
// on first use, with the defaults of all options. It should not be closed; it
// holds no goroutine while nothing is pending on it.
//
// Inside a testing/synctest bubble the package-level functions use package time
// instead of the default Scheduler, whose timers would not follow the bubble's
// clock: they behave there just as time's. Code that runs in a bubble must not
// use what Default returns; it makes a Scheduler of its own, in the bubble.
func Default() *Scheduler { return defaultScheduler() }

// outside returns the default Scheduler and the time on its clock; or nil inside
// a bubble, where time has no monotonic reading.
func outside() (*Scheduler, int64) {
	t := time.Now()
	if t == t.Round(0) {
		return nil, 0
	}
	s := defaultScheduler()
	return s, max(0, int64(t.Sub(s.epoch)))
}

// AfterFunc is [Scheduler.AfterFunc] on the default Scheduler.
func AfterFunc(d time.Duration, f func()) *Timer {
	s, now := outside()
	if s == nil {
		return &Timer{p: timePayload(time.AfterFunc(d, f)), tag: tagTime}
	}
	return s.newTimer(now, d, nil, funcPayload(f), tagFunc)
}

// NewTimer is [Scheduler.NewTimer] on the default Scheduler.
func NewTimer(d time.Duration) *Timer {
	s, now := outside()
	if s == nil {
		t := time.NewTimer(d)
		return &Timer{C: t.C, p: timePayload(t), tag: tagTime}
	}
	c := make(chan time.Time, 1)
	return s.newTimer(now, d, c, chanPayload(c), tagChan)
}

// After is [Scheduler.After] on the default Scheduler.
func After(d time.Duration) <-chan time.Time { return NewTimer(d).C }

// NewTicker is [Scheduler.NewTicker] on the default Scheduler.
func NewTicker(d time.Duration) *Ticker {
	mustBePositive("NewTicker", d)
	s, now := outside()
	if s == nil {
		t := time.NewTicker(d)
		return &Ticker{C: t.C, inner: t}
	}
	return s.newTicker(now, d)
}

// Tick is [Scheduler.Tick] on the default Scheduler.
func Tick(d time.Duration) <-chan time.Time {
	if d <= 0 {
		return nil
	}
	return NewTicker(d).C
}

// Sleep is [Scheduler.Sleep] on the default Scheduler.
func Sleep(d time.Duration) {
	s, _ := outside()
	if s == nil {
		time.Sleep(d)
		return
	}
	s.Sleep(d)
}
