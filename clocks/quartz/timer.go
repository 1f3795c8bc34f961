package quartz

import (
	"time"

	"github.com/coder/quartz"

	"github.com/tickless/tickless/timer"
)

// A Timer is one event. The time is sent on C, unless AfterFunc made it. Make one by a
// Clock.
type Timer struct {
	C <-chan time.Time
	t *timer.Timer  // unless it is
	m *quartz.Timer // a Mock's
	f func()        // AfterFunc's, of a virtual clock
}

// Stop keeps the Timer from firing. It reports whether it did so.
func (t *Timer) Stop(tags ...string) bool {
	if t.m != nil {
		return t.m.Stop(tags...)
	}
	return t.t.Stop()
}

// Reset has the Timer fire after d. It reports whether it was active.
func (t *Timer) Reset(d time.Duration, tags ...string) bool {
	if t.m != nil {
		return t.m.Reset(d, tags...)
	}
	if t.f != nil && d <= 0 {
		// A Scheduler would run it when the time moves.
		active := t.t.Stop()
		go t.f()
		return active
	}
	return t.t.Reset(d)
}

// A Ticker sends the time on C at intervals. Make one by a Clock.
type Ticker struct {
	C <-chan time.Time
	t *timer.Ticker  // unless it is
	m *quartz.Ticker // a Mock's
}

// Stop ends the ticks.
func (t *Ticker) Stop(tags ...string) {
	if t.m != nil {
		t.m.Stop(tags...)
		return
	}
	t.t.Stop()
}

// Reset gives the Ticker another period. It panics if d is not positive.
func (t *Ticker) Reset(d time.Duration, tags ...string) {
	if t.m != nil {
		t.m.Reset(d, tags...)
		return
	}
	t.t.Reset(d)
}
