// Package closed provides the root of the packages' errors named ErrClosed: errors.Is
// matches each of them with the ErrClosed of package timer. So a program that only needs
// to know whether something was closed compares with a single error.
package closed

// Root is the ErrClosed of package timer.
var Root error = &closedError{"timer: the scheduler is closed"}

// New returns the ErrClosed of another package.
func New(text string) error { return &closedError{text} }

type closedError struct{ text string }

func (e *closedError) Error() string { return e.text }

func (e *closedError) Is(target error) bool { return target == Root }
