package store

import (
	"fmt"
	"time"
)

// A Time is a point in time by a store's clock, in microseconds since 1970, UTC. Stores
// keep times from 0 to [Farthest].
type Time int64

// Farthest is the last time at which a task can be due, the end of the year 2199.
// MaxDelay is the longest delay.
const (
	Farthest Time = 7258118400_000000 - 1
	MaxDelay      = 170 * 365 * 24 * time.Hour
)

// Never is the Next of an entry that ends with its run: see [Entry].
const Never = Farthest + 1

// TimeOf converts t, rounded up to a microsecond. A time out of range becomes the
// nearest one in range.
func TimeOf(t time.Time) Time {
	switch y := t.Year(); {
	case y < 1970:
		return 0
	case y >= 2200:
		return Farthest
	}
	return max(0, min(Time(t.Add(time.Microsecond-1).UnixMicro()), Farthest))
}

// Std returns the Time as a time.Time.
func (t Time) Std() time.Time { return time.UnixMicro(int64(t)) }

// Add returns t+d, at most Farthest.
func (t Time) Add(d time.Duration) Time {
	microseconds := Time(micros(d))
	if microseconds > Farthest-t {
		return Farthest
	}
	return max(0, t+microseconds)
}

// Sub returns t-u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t-u) * time.Microsecond }

// micros converts d to microseconds, rounded up.
func micros(d time.Duration) int64 {
	microseconds := int64(d / time.Microsecond)
	if d > 0 && d%time.Microsecond != 0 {
		microseconds++
	}
	return microseconds
}

// A When is a point in time, or a delay from the moment at which the store carries out a
// command. The zero When means no time.
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

// At returns a When for a point in time.
func At(t Time) When { return When{whenAt, int64(t)} }

// After returns a When for a delay, rounded up to a microsecond.
func After(d time.Duration) When { return When{whenAfter, micros(d)} }

// IsZero reports whether w is the zero When.
func (w When) IsZero() bool { return w.kind == whenNone }

// From returns the point in time of w for a command that is carried out at now.
func (w When) From(now Time) Time {
	if w.kind == whenAfter {
		return min(now+Time(w.micros), Farthest)
	}
	return Time(w.micros)
}

// Parts returns w for transmission to another process: the microseconds since 1970, or
// the delay in microseconds if isDelay is true.
func (w When) Parts() (micros int64, isDelay bool) { return w.micros, w.kind == whenAfter }

func (w When) String() string {
	switch w.kind {
	case whenAt:
		return Time(w.micros).Std().UTC().Format(time.RFC3339Nano)
	case whenAfter:
		return fmt.Sprintf("in %d µs", w.micros)
	}
	return "none"
}

// isStorable reports whether a store can keep w: it is not zero and in range.
func (w When) isStorable() bool {
	if w.kind == whenAfter {
		return w.micros >= 0 && w.micros <= MaxDelay.Microseconds()
	}
	return w.kind == whenAt && w.micros >= 0 && Time(w.micros) <= Farthest
}
