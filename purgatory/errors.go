package purgatory

import "errors"

// ErrClosed is returned for an operation that is added after [Purgatory.Shutdown].
// None of its methods has run or will run, and it is not watched.
var ErrClosed = errors.New("purgatory: shut down")
