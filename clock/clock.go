package clock

import "time"

// A Clock tells the time and makes alarms that follow it.
//
// Now must never go backwards, as measured by [time.Time.Sub]. The system clock
// guarantees that by its monotonic reading, a virtual clock by never being set back.
type Clock interface {
	// Now returns the current time.
	Now() time.Time
	// NewAlarm returns an alarm, not yet set, that calls f when it goes off.
	// f runs on a goroutine that the clock chooses; it may call any method
	// of the alarm and of the clock.
	NewAlarm(f func()) Alarm
}

// Wall is implemented by a clock whose time of day can be set without changing the
// durations that it measures. For a clock without it, Now is the time of day too.
type Wall interface {
	// Wall returns the time of day, without a monotonic reading.
	Wall() time.Time
}

// An Alarm calls one function at one moment at a time. It is the part of
// [time.Timer], as made by [time.AfterFunc], that a scheduler needs.
//
// An alarm that is reset or stopped at the moment when it goes off may still call its
// function. So the function must look at the time and at its own state, rather than
// trust the call.
type Alarm interface {
	// Reset sets the alarm to go off once, after d, in place of any moment it
	// was set for before. A d of zero or less goes off at once, though never
	// inside the call itself.
	Reset(d time.Duration)
	// Stop unsets the alarm. An alarm that is not set stays so.
	Stop()
}

// MomentAlarm is implemented by an [Alarm] that can be set for a moment. An alarm of a
// virtual clock should be: if the clock is advanced between a reading of it and a
// Reset, a duration that was counted from the reading sets the alarm too late.
type MomentAlarm interface {
	Alarm
	// ResetAt is Reset for a moment of the clock's Now. If that has come, the
	// alarm goes off at once.
	ResetAt(t time.Time)
}

// ResetAt sets an alarm for t: by its ResetAt, if it has one, and otherwise by its
// Reset, with the duration from now to t. now is what the alarm's clock has just shown.
func ResetAt(a Alarm, now, t time.Time) {
	if m, ok := a.(MomentAlarm); ok {
		m.ResetAt(t)
		return
	}
	a.Reset(max(t.Sub(now), 0))
}

// System returns the clock of the operating system, on package time. Inside
// a testing/synctest bubble it is the bubble's fake clock.
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
