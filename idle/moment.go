package idle

import (
	"math"
	"time"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/internal/bubble"
)

// A Moment is a reading of a Monitor's clock: nanoseconds since the Monitor was made.
// Only the moments of one Monitor can be compared.
type Moment int64

// maxMoment is where a Monitor's clock stops, after 146 years: an entry's stateAndTime
// has only 62 bits for the time.
const maxMoment = unknownMoment - 1

// unknownMoment is what a Monitor's clock shows to code on the other side of a
// testing/synctest bubble's border. If an entry was touched at unknownMoment, its next
// check counts as the touch.
const unknownMoment Moment = math.MaxInt64 >> 1

// momentClock is a Monitor's clock.
type momentClock struct {
	epoch         time.Time
	clock         clock.Clock
	isSystemClock bool // clock is the system's, or that of a testing/synctest bubble
	isRealTime    bool // clock is the system's: time.Since(epoch) reads it fastest
}

func newMomentClock(c clock.Clock) momentClock {
	l := momentClock{clock: c, isSystemClock: c == nil}
	if l.isSystemClock {
		l.clock = clock.System()
	}
	l.epoch = l.clock.Now()
	l.isRealTime = l.isSystemClock && bubble.HasMonotonic(l.epoch)
	return l
}

func (l *momentClock) now() Moment {
	if l.isRealTime {
		if d := time.Since(l.epoch); d >= 0 {
			return Moment(d)
		}
		return unknownMoment // in a bubble, where time begins in the year 2000
	}
	t := l.clock.Now()
	if l.isSystemClock && bubble.HasMonotonic(t) {
		return unknownMoment
	}
	return min(max(Moment(t.Sub(l.epoch)), 0), maxMoment)
}

func (l *momentClock) timeOf(at Moment) time.Time { return l.epoch.Add(time.Duration(at)) }
