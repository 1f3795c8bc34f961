package durable

import "time"

// A handler returns a NoRetryError to make the task a dead letter, even if attempts are
// left: see [NoRetry].
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

// A handler returns a RetryAfterError to set the delay before the next attempt. It has
// no effect after the last attempt. See [RetryAfter].
type RetryAfterError struct {
	Err error
	// After is the delay. Zero or less means immediately. It may exceed the limit of
	// [WithBackoff].
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

// A handler returns a HandBackError if another worker must run the task. After the
// delay any worker may claim the task. The attempt does not count. See [HandBack].
type HandBackError struct {
	Err error
	// After is the delay. Zero or less means immediately.
	After time.Duration
}

// HandBack wraps err in a [HandBackError] with the delay d. It returns nil if err is
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
