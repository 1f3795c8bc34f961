package delayqueue

import (
	"math"
	"time"

	"github.com/tickless/tickless/internal/bubble"
)

// Moments are nanoseconds since the queue's epoch.

// never is the moment of a deadline that is beyond 64 bits of nanoseconds. It is never
// due, not even when a clock that has run for 292 years reads the same number.
const never = math.MaxInt64

// isDue reports whether a deadline at moment due has passed at moment now.
func isDue(due, now int64) bool { return due <= now && due != never }

// now returns the moment that the clock shows.
func (q *Queue[T]) now() int64 { return int64(q.clock.Now().Sub(q.epoch)) }

// timeOf returns the time at the given moment.
func (q *Queue[T]) timeOf(moment int64) time.Time { return q.epoch.Add(time.Duration(moment)) }

// momentOf returns the moment of a deadline. If only the epoch has a monotonic reading,
// momentOf adds the delay by the wall clock to the present moment, as time.Until does.
// The wall clock may have been set since the epoch, as on a board that boots in 1970 and
// gets the time from the network a second later.
func (q *Queue[T]) momentOf(deadline time.Time) int64 {
	d := int64(deadline.Sub(q.epoch)) // saturates
	if d == never || bubble.Monotonic(deadline) || !bubble.Monotonic(q.epoch) {
		return d
	}
	now := q.clock.Now()
	return add(int64(now.Sub(q.epoch)), int64(deadline.Sub(now)))
}

// add returns a+b, saturated.
func add(a, b int64) int64 {
	switch c := a + b; {
	case a > 0 && b > 0 && c < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && c >= 0:
		return math.MinInt64
	default:
		return c
	}
}
