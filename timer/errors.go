package timer

import "errors"

var (
	// ErrClosed is returned for a timer that was to be started on a Scheduler
	// after Close or Shutdown.
	ErrClosed = errors.New("timer: the scheduler is closed")
	// ErrTooManyPending is returned for a timer that would be one more than
	// [WithMaxPending] allows.
	ErrTooManyPending = errors.New("timer: too many pending timers")
)
