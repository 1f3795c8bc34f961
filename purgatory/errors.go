package purgatory

import "errors"

// ErrClosed is returned for an operation that was given to a Purgatory after
// [Purgatory.Shutdown]. It was not asked, is not watched, and none of its
// callbacks will run.
var ErrClosed = errors.New("purgatory: shut down")
