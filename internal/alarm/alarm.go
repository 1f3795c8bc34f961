// Package alarm provides exact alarms on the system's clock, for the pollers of
// Schedulers.
//
// On Linux, alarms less than a second away use a timerfd. In an idle process, a timerfd
// is exact, but a time.Timer is up to a millisecond late. A second timerfd is for the case
// that a function takes long, and a third one for functions that compute: see descriptor
// and lookout.
//
// If all processors are busy, a timerfd is later than a time.Timer. So after the timerfd
// has been late, alarms use time.Timers for a while: see hub. Other alarms, and all
// alarms on other systems, always use time.Timers.
//
// All alarms of a process share one hub.
package alarm

import (
	"time"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/internal/bubble"
)

// New returns an alarm that calls f when it goes off. The alarm is not yet set. f must
// reset or stop the alarm, and may block after that. An alarm must not be used inside a
// testing/synctest bubble.
func New(f func()) clock.MomentAlarm { return &hubAlarm{hub: processHub(), f: f} }

// ExpectLateRings tells the hub that callbacks take long. If they compute, they keep the
// procs busy, and the timerfd is late: see hub.
func ExpectLateRings() {
	if !bubble.Inside() { // the hub's timers cannot be set inside a bubble
		processHub().expectLateRings()
	}
}

// Release closes the process's timerfd and stops its timers, if no alarm is set.
func Release() { processHub().release() }

// A hubAlarm is an alarm of a hub.
type hubAlarm struct {
	hub  *hub
	f    func()
	when int64 // the moment that the alarm was last set for; guarded by the hub's lock
}

func (m *hubAlarm) Reset(d time.Duration) { m.ResetAt(time.Now().Add(d)) }
func (m *hubAlarm) ResetAt(t time.Time)   { m.hub.setAlarm(m, m.hub.momentOf(t)) }
func (m *hubAlarm) Stop()                 { m.hub.setAlarm(m, never) }
