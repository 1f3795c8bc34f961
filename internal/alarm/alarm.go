// Package alarm is the alarm on the system's clock that a Scheduler's poller sleeps by: as
// exact as the platform allows, for little CPU.
//
// Package time's timers are late by up to a millisecond in an idle process on Linux, where
// the runtime sleeps in whole milliseconds, and setting one again after it rang often wakes
// a second thread. A timerfd is exact and wakes one goroutine. But where every proc is
// busy, what a descriptor wakes goes to the end of a run queue, and a timer's function to
// its front, most of the time. So on Linux the descriptor leads until it is found late: see
// hub. Elsewhere there are package time's timers alone.
//
// All alarms of a process share one hub, so the runtime and the system see one alarm.
package alarm

import (
	"time"

	"github.com/tickless/tickless/clock"
)

// New returns an alarm, not yet set, that calls f when it goes off. It must not be made or
// used inside a testing/synctest bubble.
//
// f must set the alarm again or stop it, and may take its time once it has. The alarm holds
// nothing until it is first set, and soon after it was stopped: see [Release].
func New(f func()) clock.MomentAlarm { return &member{h: process(), f: f} }

// Release frees what the process holds for alarms, if none is set.
func Release() { process().release() }

// A member is an alarm of a hub's.
type member struct {
	h    *hub
	f    func()
	when int64 // while it is in the hub's set, whose lock guards it
}

func (m *member) Reset(d time.Duration) { m.ResetAt(time.Now().Add(d)) }
func (m *member) ResetAt(t time.Time)   { m.h.move(m, m.h.at(t)) }
func (m *member) Stop()                 { m.h.move(m, never) }
