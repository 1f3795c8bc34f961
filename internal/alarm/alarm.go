// Package alarm provides the alarm for which a Scheduler's poller sleeps, on the system's
// clock. The alarm is as exact as the platform allows, and costs little CPU.
//
// Why not only time.Timer: in an idle process on Linux, the runtime sleeps in whole
// milliseconds, so a time.Timer is up to a millisecond late. Resetting a time.Timer after
// it has fired often wakes a second thread. A timerfd is exact and wakes one goroutine.
//
// Why not only a timerfd: if all processors are busy, the goroutine that waits for the
// timerfd goes to the end of a run queue. The function of a time.Timer mostly goes to the
// front.
//
// So on Linux the alarm uses a timerfd for moments less than a second away. After the
// timerfd has been late, the alarm uses time.Timers for a while: see hub. Otherwise, and
// on other systems, it always uses time.Timers.
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
// before it is first set. It frees them soon after it is stopped: see [Release].
func New(f func()) clock.MomentAlarm { return &hubAlarm{hub: processHub(), f: f} }

// Release closes the process's timerfd and stops its timers, if no alarm is set.
func Release() { processHub().release() }

// A hubAlarm is an alarm of a hub.
type hubAlarm struct {
	hub  *hub
	f    func()
	when int64 // valid while the hub has the alarm; guarded by the hub's lock
}

func (m *hubAlarm) Reset(d time.Duration) { m.ResetAt(time.Now().Add(d)) }
func (m *hubAlarm) ResetAt(t time.Time)   { m.hub.setAlarm(m, m.hub.momentOf(t)) }
func (m *hubAlarm) Stop()                 { m.hub.setAlarm(m, never) }
