// Package alarm is the alarm on the system's clock that a scheduler's poller
// sleeps by: as exact as the platform allows.
//
// All alarms of a process share one hub: a heap of the moments that they are set for,
// one timer of package time, and on Linux one timerfd with a goroutine that waits for
// it. However many alarms there are, the runtime and the system see one, and an alarm
// that is not the first to ring costs them nothing.
//
// Package time's timers are late by up to a millisecond in an idle process on
// Linux, where the runtime sleeps in whole milliseconds. A timerfd is exact there,
// but late when every proc is busy: what a descriptor wakes goes to the end of the
// run queue, where a timer's function goes to its front. So on Linux both are set
// while rings are rare, and whichever comes first rings; beyond that, it is package
// time's timer alone. So it is elsewhere, where the time is fake, and while no
// descriptor is to be had.
//
// What package time's timer comes to elsewhere is for the runtime and the system to
// say; nothing here adds to it. As of Go 1.26 an idle process sleeps in kevent on
// macOS and the BSDs, with a timeout in nanoseconds, which macOS may stretch to let
// timers coincide. On Windows it sleeps by a high-resolution timer, which Go's release
// notes give half a millisecond, and where the system has none, before Windows 10
// 1803, in whole ticks of the system's clock, of up to 15.6 ms.
package alarm

import (
	"sync"
	"time"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/internal/bubble"
)

// An Alarm is a [clock.Alarm] that holds resources while it is set.
//
// One that was made outside a testing/synctest bubble can be stopped and closed inside,
// but not set: Reset does nothing there, and the alarm stays as it is. What is held for
// an alarm that was stopped there is kept until the moment for which it was set.
type Alarm interface {
	clock.Alarm
	// Close unsets the alarm for good and gives back what is held for it. The
	// channel is closed once nothing of that is left: at once, or when a call of the
	// alarm's function that is under way has returned, or when the goroutine that
	// waits for the descriptor has ended, if no other alarm needs it, and those that
	// timers have started.
	Close() <-chan struct{}
}

// New returns an alarm, not yet set, that calls f when it goes off. It holds
// nothing until it is first set, and lets go of what it holds soon after it went
// off or was stopped and was not set again.
//
// f may take its time, but has to set the alarm again or stop it first: until then
// what was held for the alarm is kept.
func New(f func()) Alarm {
	if bubble.Inside() {
		return On(clock.System(), f)
	}
	return process().add(f)
}

// NewThen is New for an alarm that calls then, on the same goroutine, after each call of
// f that has reported true. Nobody waits for then, and neither does Close: for all others
// the call of f is over.
func NewThen(f func() bool, then func()) Alarm {
	if bubble.Inside() {
		return On(clock.System(), func() {
			if f() {
				then()
			}
		})
	}
	return process().addThen(f, then)
}

// Crowded tells the alarms of the process that goroutines wait for a proc, or are about
// to: then the place in front of a run queue is easily lost, and with it a ring for as long
// as the queue is. So from now on rings have backups. It does nothing inside a bubble.
func Crowded() {
	if !bubble.Inside() {
		process().crowded()
	}
}

// On returns an alarm of the clock's own.
func On(c clock.Clock, f func()) Alarm {
	a := c.NewAlarm(f)
	if m, ok := a.(clock.MomentAlarm); ok {
		return &moment{plain{a: a}, m}
	}
	return &plain{a: a}
}

// plain is a clock's alarm. Stop and Close touch that only if it was set since they last
// did: once a bubble is over, nobody may touch its timers.
type plain struct {
	mu  sync.Mutex
	a   clock.Alarm
	set bool
}

// moment is one that can be set for a moment.
type moment struct {
	plain
	m clock.MomentAlarm
}

func (p *plain) Reset(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set = true
	p.a.Reset(d)
}

func (m *moment) ResetAt(t time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set = true
	m.m.ResetAt(t)
}

func (p *plain) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.set {
		p.set = false
		p.a.Stop()
	}
}

func (p *plain) Close() <-chan struct{} {
	p.Stop()
	return closed
}

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()
