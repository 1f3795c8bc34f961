package idle

import (
	"math"
	"time"

	"github.com/tickless/tickless/clock"
	"github.com/tickless/tickless/internal/bubble"
)

// A Moment is a reading of a Monitor's clock: nanoseconds since the Monitor was
// made. Only the moments of one Monitor can be compared.
type Moment int64

// maxMoment is where a Monitor's clock stops, after 146 years: a word also has
// to hold an entry's state. From then on nothing is evicted.
const maxMoment = away - 1

// away is what the clock of a Monitor that was made outside a testing/synctest bubble
// reads inside, and the other way round: how late it is on the other side, nobody can
// tell there. An entry that was touched then counts as touched when its timer fires.
const away Moment = math.MaxInt64 >> 1

// timeline is a Monitor's clock.
type timeline struct {
	epoch  time.Time
	clock  clock.Clock
	system bool // the clock is the system's: time.Since(epoch) reads it best
	real   bool // and it was not made in a testing/synctest bubble
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
		return away // a bubble's clock begins in the year 2000
	}
	t := l.clock.Now()
	if l.system && bubble.Monotonic(t) {
		return away
	}
	return min(max(Moment(t.Sub(l.epoch)), 0), maxMoment)
}

func (l *timeline) time(at Moment) time.Time { return l.epoch.Add(time.Duration(at)) }
