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

// maxMoment is where a Monitor's clock stops, after 146 years: an entry's word has only
// 62 bits for the time.
const maxMoment = unknown - 1

// unknown is what a Monitor's clock shows to code on the other side of a testing/synctest
// bubble's border. If an entry was touched at unknown, its next check counts as the
// touch.
const unknown Moment = math.MaxInt64 >> 1

// timeline is a Monitor's clock.
type timeline struct {
	epoch      time.Time
	clock      clock.Clock
	isSystem   bool // clock is the system's, or that of a testing/synctest bubble
	isRealTime bool // clock is the system's: time.Since(epoch) reads it fastest
}

func newTimeline(c clock.Clock) timeline {
	l := timeline{clock: c, isSystem: c == nil}
	if l.isSystem {
		l.clock = clock.System()
	}
	l.epoch = l.clock.Now()
	l.isRealTime = l.isSystem && bubble.Monotonic(l.epoch)
	return l
}

func (l *timeline) now() Moment {
	if l.isRealTime {
		if d := time.Since(l.epoch); d >= 0 {
			return Moment(d)
		}
		return unknown // in a bubble, where time begins in the year 2000
	}
	t := l.clock.Now()
	if l.isSystem && bubble.Monotonic(t) {
		return unknown
	}
	return min(max(Moment(t.Sub(l.epoch)), 0), maxMoment)
}

func (l *timeline) time(at Moment) time.Time { return l.epoch.Add(time.Duration(at)) }
