package store

import (
	"fmt"
	"time"
)

// A Time is a moment by a store's clock, in microseconds since 1970, UTC. Stores keep
// times from 0 to [Farthest].
type Time int64

// Farthest is the last moment that a task can be due at, the end of the year 2199, and
// MaxDelay the longest time until then.
const (
	Farthest Time = 7258118400_000000 - 1
	MaxDelay      = 170 * 365 * 24 * time.Hour
)

// TimeOf returns t as a Time, rounded up to a microsecond, and as near as a Time may
// be.
func TimeOf(t time.Time) Time {
	switch y := t.Year(); {
	case y < 1970:
		return 0
	case y >= 2200:
		return Farthest
	}
	return max(0, min(Time(t.Add(time.Microsecond-1).UnixMicro()), Farthest))
}

// Std returns the Time as package time has it.
func (t Time) Std() time.Time { return time.UnixMicro(int64(t)) }

// Add returns the Time d later, and Farthest at most.
func (t Time) Add(d time.Duration) Time {
	us := Time(micros(d))
	if us > Farthest-t {
		return Farthest
	}
	return max(0, t+us)
}

// Sub returns t-u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t-u) * time.Microsecond }

// micros rounds up to a microsecond.
func micros(d time.Duration) int64 {
	us := int64(d / time.Microsecond)
	if d > 0 && d%time.Microsecond != 0 {
		us++
	}
	return us
}

// A When is a moment that a command names: a point in time, or a delay from the moment
// at which the store carries the command out. The zero When is none.
type When struct {
	kind   whenKind
	micros int64
}

type whenKind uint8

const (
	whenNone whenKind = iota
	whenAt
	whenAfter
)

// At is a point in time.
func At(t Time) When { return When{whenAt, int64(t)} }

// After is a delay, rounded up to a microsecond.
func After(d time.Duration) When { return When{whenAfter, micros(d)} }

// IsZero reports whether w is no moment.
func (w When) IsZero() bool { return w.kind == whenNone }

// From returns the moment, if the command is carried out now.
func (w When) From(now Time) Time {
	if w.kind == whenAfter {
		return min(now+Time(w.micros), Farthest)
	}
	return Time(w.micros)
}

// Parts returns what a store that does not run in this process has to send: the
// microseconds, and whether they count from now.
func (w When) Parts() (micros int64, fromNow bool) { return w.micros, w.kind == whenAfter }

func (w When) String() string {
	switch w.kind {
	case whenAt:
		return Time(w.micros).Std().UTC().Format(time.RFC3339Nano)
	case whenAfter:
		return fmt.Sprintf("in %d µs", w.micros)
	}
	return "none"
}

// inRange reports whether w is a moment that a store keeps.
func (w When) inRange() bool {
	if w.kind == whenAfter {
		return w.micros >= 0 && w.micros <= MaxDelay.Microseconds()
	}
	return w.kind == whenAt && w.micros >= 0 && Time(w.micros) <= Farthest
}
