package durable

import "time"

// A NoRetryError makes the task of the handler that returns it a dead letter at once,
// even if attempts are left. [NoRetry] returns one.
type NoRetryError struct{ Err error }

// NoRetry wraps err so that the task is not tried again. It returns nil if err is nil.
func NoRetry(err error) error {
	if err == nil {
		return nil
	}
	return &NoRetryError{err}
}

func (e *NoRetryError) Error() string { return text(e.Err) }
func (e *NoRetryError) Unwrap() error { return e.Err }

// A RetryAfterError is an error that a handler returns to choose the delay before the
// next attempt, for example from a Retry-After header. It has no effect if no attempts
// are left. [RetryAfter] returns one.
type RetryAfterError struct {
	Err error
	// After is the delay. Zero or less means at once. It is used without jitter and may
	// exceed the worker's maximum, up to 170 years.
	After time.Duration
}

// RetryAfter wraps err so that the task is tried again after d. It returns nil if err
// is nil.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &RetryAfterError{err, d}
}

func (e *RetryAfterError) Error() string { return text(e.Err) }
func (e *RetryAfterError) Unwrap() error { return e.Err }

// A HandBackError is an error that a handler returns if it cannot run a task now, for
// example because what it needs has no room, or because another process must run it.
// The attempt does not count, and the task is pending again. After the delay any worker
// may claim it. [HandBack] returns one.
type HandBackError struct {
	Err error
	// After is the delay, up to 170 years. Zero or less means at once.
	After time.Duration
}

// HandBack wraps err so that any worker may run the task after d, as if this attempt
// had not happened. A task may be handed back any number of times. HandBack returns nil
// if err is nil.
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
