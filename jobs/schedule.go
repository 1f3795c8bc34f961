package jobs

import "time"

// A Schedule returns the times of an event by the wall clock. Use [Cron], [At], or a type
// of your own.
type Schedule interface {
	// Next returns the first time after t, or the zero time if there is none.
	Next(t time.Time) time.Time
}

// At returns a Schedule with one occurrence, at t. If t has passed when the job is
// started, the job does not run.
func At(t time.Time) Schedule { return at(t) }

type at time.Time

func (a at) Next(t time.Time) time.Time {
	if t.Before(time.Time(a)) {
		return time.Time(a)
	}
	return time.Time{}
}
