// Package closed relates the ErrClosed of each package to the ErrClosed of package timer:
// errors.Is reports that each matches it. So a program can use one error to find out
// whether something was closed.
package closed

// Root is the error that package timer exports as ErrClosed.
var Root error = &closedError{"timer: the scheduler is closed"}

// New returns an error for another package to export as ErrClosed.
func New(text string) error { return &closedError{text} }

type closedError struct{ text string }

func (e *closedError) Error() string { return e.text }

func (e *closedError) Is(target error) bool { return target == Root }
