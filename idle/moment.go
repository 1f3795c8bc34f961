package idle

import (
	"math"
	"time"

	"github.com/tickless/tickless/clock"
)

// A Moment is a reading of a Monitor's clock: nanoseconds since the Monitor was
// made. Only the moments of one Monitor can be compared.
type Moment int64

// maxMoment is where a Monitor's clock stops, after 146 years: a word also has
// to hold an entry's state. Nothing is evicted early for that, or at all any
// more.
const maxMoment Moment = math.MaxInt64 >> 1

// timeline is a Monitor's clock.
type timeline struct {
	epoch  time.Time
	clock  clock.Clock
	system bool // the clock is the system's: time.Since(epoch) reads it best
}

func newTimeline(c clock.Clock) timeline {
	l := timeline{clock: c, system: c == nil}
	if l.system {
		l.clock = clock.System()
	}
	l.epoch = l.clock.Now()
	return l
}

func (l *timeline) now() Moment {
	if l.system {
		return Moment(time.Since(l.epoch))
	}
	return min(max(Moment(l.clock.Now().Sub(l.epoch)), 0), maxMoment)
}

func (l *timeline) time(at Moment) time.Time { return l.epoch.Add(time.Duration(at)) }
