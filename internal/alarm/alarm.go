// Package alarm is the alarm on the system's clock that a Scheduler's poller sleeps by: as
// exact as the platform allows, for little CPU.
//
// Package time's timers are late by up to a millisecond in an idle process on Linux, where
// the runtime sleeps in whole milliseconds, and setting one again after it rang often wakes
// a second thread. A timerfd is exact and wakes one goroutine. But where every proc is
// busy, what a descriptor wakes goes to the end of a run queue, and a timer's function to
// its front. So on Linux the descriptor leads until it is found late: see hub. Elsewhere it
// is package time's timer alone.
//
// All alarms of a process share one hub, so the runtime and the system see one alarm.
package alarm

import (
	"sync"
	"time"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/internal/bubble"
)

// An Alarm is a [clock.Alarm] that can be closed.
//
// One that was made outside a testing/synctest bubble can be stopped and closed inside,
// but not set: Reset does nothing there, and the alarm stays as it is.
type Alarm interface {
	clock.Alarm
	// Close unsets the alarm for good. A call of its function that is under way goes on.
	Close()
}

// New returns an alarm, not yet set, that calls f when it goes off. It holds nothing until
// it is first set, and soon after it went off or was stopped and was not set again.
//
// f may take its time, once it has set the alarm again or stopped it.
func New(f func()) Alarm {
	if bubble.Inside() {
		return On(clock.System(), f)
	}
	return &member{h: process(), f: f}
}

// On returns an alarm of the clock's own.
func On(c clock.Clock, f func()) Alarm { return &plain{c: c, a: c.NewAlarm(f)} }

// plain is a clock's alarm. Stop and Close touch that only if it was set since they last
// did: once a bubble is over, nobody may touch its timers.
type plain struct {
	c   clock.Clock
	mu  sync.Mutex
	a   clock.Alarm
	set bool
}

func (p *plain) Reset(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set = true
	p.a.Reset(d)
}

func (p *plain) ResetAt(t time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set = true
	clock.ResetAt(p.a, p.c.Now(), t)
}

func (p *plain) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.set {
		p.set = false
		p.a.Stop()
	}
}

func (p *plain) Close() { p.Stop() }
