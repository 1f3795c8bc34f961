// Package closed makes each package's ErrClosed match package timer's ErrClosed in
// errors.Is. So a program can test for one error, whatever was closed.
package closed

// TimerErrClosed is the error that package timer exports as ErrClosed.
var TimerErrClosed error = &closedError{"timer: the scheduler is closed"}

// New returns an error for another package to export as ErrClosed.
func New(text string) error { return &closedError{text} }

type closedError struct{ text string }

func (e *closedError) Error() string { return e.text }

func (e *closedError) Is(target error) bool { return target == TimerErrClosed }
