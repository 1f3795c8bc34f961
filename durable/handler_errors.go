package durable

import "time"

// A NoRetryError is returned by a handler to make a dead letter of its task at
// once, whatever attempts are left. [NoRetry] makes one.
type NoRetryError struct{ Err error }

// NoRetry says that the task shall not be tried again. It returns nil for nil.
func NoRetry(err error) error {
	if err == nil {
		return nil
	}
	return &NoRetryError{err}
}

func (e *NoRetryError) Error() string { return text(e.Err) }
func (e *NoRetryError) Unwrap() error { return e.Err }

// A RetryAfterError is returned by a handler to have its task tried again, if it
// has attempts left, after a delay of the handler's choice instead of the
// worker's: what a Retry-After header of HTTP asks for. [RetryAfter] makes one.
type RetryAfterError struct {
	Err error
	// After is the delay; zero is at once, and what is negative counts as zero. It
	// is used as it is, without jitter and beyond the worker's cap, up to 170 years.
	After time.Duration
}

// RetryAfter says that the task shall be tried again after d. It returns nil if
// err is nil.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &RetryAfterError{err, d}
}

func (e *RetryAfterError) Error() string { return text(e.Err) }
func (e *RetryAfterError) Unwrap() error { return e.Err }

// A HandBackError is returned by a handler that cannot take a task now: what it
// needs has no room, or the process is not the right one. The attempt does not
// count, the task is pending again, and whichever worker comes first gets it after
// the delay. [HandBack] makes one.
type HandBackError struct {
	Err error
	// After is the delay, up to 170 years; zero is at once, and what is negative
	// counts as zero.
	After time.Duration
}

// HandBack says that the task shall be taken by whoever comes after d, as if it had
// not been tried. How often is not limited. It returns nil if err is nil.
func HandBack(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &HandBackError{err, d}
}

func (e *HandBackError) Error() string { return text(e.Err) }
func (e *HandBackError) Unwrap() error { return e.Err }

func text(err error) string {
	if err == nil {
		return "(no error)"
	}
	return err.Error()
}
