package jobs

import "time"

// A Schedule returns the times at which a job runs, by the wall clock. Use [ParseCron],
// [At], or a type of your own.
type Schedule interface {
	// Next returns the first time after t, or the zero time if there is none.
	Next(t time.Time) time.Time
}

// At returns a Schedule with one occurrence, at t. If t has passed when the job is
// started, the job does not run.
func At(t time.Time) Schedule { return onceAt(t) }

type onceAt time.Time

func (at onceAt) Next(t time.Time) time.Time {
	if t.Before(time.Time(at)) {
		return time.Time(at)
	}
	return time.Time{}
}
