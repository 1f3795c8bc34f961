package clock

import "time"

// A Clock tells the time and makes alarms. Now must never go backwards, as measured by
// [time.Time.Sub].
type Clock interface {
	// Now returns the current time.
	Now() time.Time
	// NewAlarm returns an alarm that calls f when it goes off. The alarm is not yet set.
	// f may run on any goroutine, and may call any method of the alarm and of the clock.
	NewAlarm(f func()) Alarm
}

// Wall is implemented by a Clock whose time of day can be set without changing Now. The
// time of day of any other Clock is Now.
type Wall interface {
	// Wall returns the time of day, without a monotonic reading.
	Wall() time.Time
}

// An Alarm calls a function at the moment that it is set for, as [time.AfterFunc] does.
//
// If the alarm goes off during a call of Reset or Stop, it may still call its function.
// So the function must check the time and its own state.
type Alarm interface {
	// Reset sets the alarm to go off once, after d, in place of an earlier setting. If d
	// is zero or less, the alarm goes off immediately, but never inside Reset.
	Reset(d time.Duration)
	// Stop cancels the alarm. It does nothing if the alarm is not set.
	Stop()
}

// A MomentAlarm is an [Alarm] that can be set for a moment, not only for a duration. The
// alarms of a virtual clock should implement it: a duration is wrong if the clock is
// advanced before Reset.
type MomentAlarm interface {
	Alarm
	// ResetAt sets the alarm to go off once, at t by the clock's Now. If t has passed,
	// the alarm goes off immediately.
	ResetAt(t time.Time)
}

// ResetAt sets alarm a for t: with a.ResetAt if a is a [MomentAlarm], otherwise with
// a.Reset. now must be a recent reading of the alarm's clock.
func ResetAt(a Alarm, now, t time.Time) {
	if m, ok := a.(MomentAlarm); ok {
		m.ResetAt(t)
		return
	}
	a.Reset(max(t.Sub(now), 0))
}

// System returns the clock of the operating system, read through package time. Inside a
// testing/synctest bubble it is the bubble's fake clock.
func System() Clock { return system{} }

type system struct{}

func (system) Now() time.Time { return time.Now() }

func (system) NewAlarm(f func()) Alarm {
	t := time.AfterFunc(1<<63-1, f)
	t.Stop()
	return systemAlarm{t}
}

type systemAlarm struct{ t *time.Timer }

func (a systemAlarm) Reset(d time.Duration) { a.t.Reset(d) }
func (a systemAlarm) Stop()                 { a.t.Stop() }
