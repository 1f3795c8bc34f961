package delayqueue

import (
	"math"
	"time"

	"github.com/tickless/tickless/internal/bubble"
)

// Moments are nanoseconds since the queue's epoch, which is when it was made.

const (
	// never is the moment that no clock reaches: what lies further ahead than
	// 64 bits of nanoseconds is kept as this, and is not due when a clock
	// that has run for 292 years reads the same number.
	never = math.MaxInt64

	// skewTolerance is how far, in nanoseconds, the wall clock may part from
	// the monotonic one before we call it set. The two are read one after the
	// other, so they always differ by a little.
	skewTolerance = int64(time.Millisecond)
)

// isDue reports whether the moment due has come at now.
func isDue(due, now int64) bool { return due <= now && due != never }

// now returns the moment that the clock shows.
func (q *Queue[T]) now() int64 { return int64(q.clock.Now().Sub(q.epoch)) }

// timeOf returns the time at the given moment.
func (q *Queue[T]) timeOf(moment int64) time.Time { return q.epoch.Add(time.Duration(moment)) }

// momentLocked returns the moment of a deadline.
//
// Between two monotonic readings, or two wall ones, Sub gives it: equal
// deadlines have equal moments. A wall deadline against a monotonic epoch has
// to follow the wall clock where it has been set since (think of a board that
// boots in 1970 and asks for the time a second later), so the distance by
// which the wall clock was set is kept in skew. It is not computed afresh each
// time, since its jitter would shuffle equal deadlines.
func (q *Queue[T]) momentLocked(deadline time.Time) int64 {
	d := int64(deadline.Sub(q.epoch)) // saturates
	if !q.monotonic || bubble.Monotonic(deadline) || d == never {
		return d
	}
	if s := q.readSkew(); s-q.skew > skewTolerance || q.skew-s > skewTolerance {
		// If we were descheduled between the clock's two readings, they seem
		// to have parted: only what a second look confirms is taken.
		if again := q.readSkew(); again-s <= skewTolerance && s-again <= skewTolerance {
			q.skew = again
		}
	}
	return add(d, -q.skew)
}

// readSkew returns by how much the wall clock has been set forward since the
// epoch, in nanoseconds.
func (q *Queue[T]) readSkew() int64 {
	t := q.clock.Now()
	return int64(t.Round(0).Sub(q.epoch)) - int64(t.Sub(q.epoch))
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
