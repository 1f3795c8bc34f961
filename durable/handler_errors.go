package durable

import "time"

// A NoRetryError, returned by a handler, makes the task a dead letter at once, even if
// attempts are left. [NoRetry] makes one.
type NoRetryError struct{ Err error }

// NoRetry wraps err so that the task is not tried again. It returns nil if err is nil.
func NoRetry(err error) error {
	if err == nil {
		return nil
	}
	return &NoRetryError{err}
}

func (e *NoRetryError) Error() string { return errorText(e.Err) }
func (e *NoRetryError) Unwrap() error { return e.Err }

// A RetryAfterError, returned by a handler, sets the delay before the next attempt, for
// example from a Retry-After header. It has no effect on the last attempt. [RetryAfter]
// makes one.
type RetryAfterError struct {
	Err error
	// After is the exact delay, up to 170 years. Zero or less means at once. It may exceed
	// the limit of [WithBackoff].
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

func (e *RetryAfterError) Error() string { return errorText(e.Err) }
func (e *RetryAfterError) Unwrap() error { return e.Err }

// A HandBackError, returned by a handler, hands the task back, for example because
// another process must run it. The attempt does not count, and the task is pending
// again. After the delay any worker may claim it. [HandBack] makes one.
type HandBackError struct {
	Err error
	// After is the delay, up to 170 years. Zero or less means at once.
	After time.Duration
}

// HandBack wraps err so that any worker may run the task after d. This attempt does not
// count. A task may be handed back any number of times. HandBack returns nil if err is
// nil.
func HandBack(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &HandBackError{err, d}
}

func (e *HandBackError) Error() string { return errorText(e.Err) }
func (e *HandBackError) Unwrap() error { return e.Err }

func errorText(err error) string {
	if err == nil {
		return "(no error)"
	}
	return err.Error()
}
