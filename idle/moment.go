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

// maxMoment is where a Monitor's clock stops, after 146 years, because a word also
// contains an entry's state. From then on no entry is evicted.
const maxMoment = unknown - 1

// unknown is the reading of a clock across the border of a testing/synctest bubble:
// inside a bubble if the Monitor was made outside, and the reverse. The true time cannot
// be known there. An entry that was touched at unknown counts as touched when its timer
// fires.
const unknown Moment = math.MaxInt64 >> 1

// timeline is a Monitor's clock.
type timeline struct {
	epoch  time.Time
	clock  clock.Clock
	system bool // clock is the system's, and time.Since(epoch) reads it fastest
	real   bool // system, and not made in a testing/synctest bubble
}

func newTimeline(c clock.Clock) timeline {
	l := timeline{clock: c, system: c == nil}
	if l.system {
		l.clock = clock.System()
	}
	l.epoch = l.clock.Now()
	l.real = l.system && bubble.Monotonic(l.epoch)
	return l
}

func (l *timeline) now() Moment {
	if l.real {
		if d := time.Since(l.epoch); d >= 0 {
			return Moment(d)
		}
		return unknown // time in a bubble begins in the year 2000
	}
	t := l.clock.Now()
	if l.system && bubble.Monotonic(t) {
		return unknown
	}
	return min(max(Moment(t.Sub(l.epoch)), 0), maxMoment)
}

func (l *timeline) time(at Moment) time.Time { return l.epoch.Add(time.Duration(at)) }
