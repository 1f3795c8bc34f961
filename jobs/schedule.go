package jobs

import "time"

// A Schedule says when something happens, by the wall clock: [Cron], [At], or one of your
// own.
type Schedule interface {
	// Next returns the first time after t, or the zero time if there is none.
	Next(t time.Time) time.Time
}

// At returns the Schedule of one occurrence, at t. If t has passed when the job is
// started, it does not run.
func At(t time.Time) Schedule { return at(t) }

type at time.Time

func (a at) Next(t time.Time) time.Time {
	if t.Before(time.Time(a)) {
		return time.Time(a)
	}
	return time.Time{}
}
