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
const maxMoment Moment = math.MaxInt64 >> 1

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
		d := time.Since(l.epoch)
		if d < 0 {
			l.refuseInsideBubble()
		}
		return Moment(d)
	}
	return min(max(Moment(l.clock.Now().Sub(l.epoch)), 0), maxMoment)
}

// refuseInsideBubble panics inside a testing/synctest bubble if the Monitor was made
// outside: a touch would count as one in the year 2000. By the system's clock the time
// since the epoch is never negative.
func (l *timeline) refuseInsideBubble() {
	if l.real && bubble.Inside() {
		panic("idle: a Monitor or Conns that was made outside a testing/synctest bubble is used inside one:" +
			" make it inside the bubble")
	}
}

func (l *timeline) time(at Moment) time.Time { return l.epoch.Add(time.Duration(at)) }
