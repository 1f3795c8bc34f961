// Package alarm provides the alarm on the system's clock for which a Scheduler's poller
// sleeps: as exact as the platform allows, for little CPU.
//
// Package time's timers are late by up to a millisecond in an idle process on Linux,
// where the runtime sleeps in whole milliseconds. Resetting such a timer after it has
// fired often wakes a second thread. A timerfd is exact and wakes one goroutine. But if
// all procs are busy, a goroutine that a descriptor wakes goes to the end of a run queue,
// and a timer's function mostly to its front. So on Linux the alarm uses the descriptor
// for moments less than a second away, until it has been late: see hub. Otherwise, and on
// other systems, it uses package time's timers alone.
//
// All alarms of a process share one hub, so the runtime and the system see one alarm.
package alarm

import (
	"time"

	"github.com/tickless/tickless/clock"
)

// New returns an alarm that calls f when it goes off. The alarm is not yet set. It must
// not be made or used inside a testing/synctest bubble.
//
// f must reset or stop the alarm, and may block after that. The alarm uses no resources
// before it is first set, and none soon after it was stopped: see [Release].
func New(f func()) clock.MomentAlarm { return &member{h: process(), f: f} }

// Release frees the process's resources for alarms, if no alarm is set.
func Release() { process().release() }

// A member is an alarm of a hub.
type member struct {
	h    *hub
	f    func()
	when int64 // valid while the hub has the alarm; guarded by the hub's lock
}

func (m *member) Reset(d time.Duration) { m.ResetAt(time.Now().Add(d)) }
func (m *member) ResetAt(t time.Time)   { m.h.move(m, m.h.at(t)) }
func (m *member) Stop()                 { m.h.move(m, never) }
