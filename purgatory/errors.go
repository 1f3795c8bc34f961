package purgatory

import "github.com/tickless/tickless/internal/closed"

// ErrClosed is returned for an operation that is added after [Purgatory.Close] or
// [Purgatory.Shutdown]. None of its methods has run or will run, and it is not
// watched. errors.Is reports that it is [timer.ErrClosed] too.
var ErrClosed = closed.New("purgatory: closed")
