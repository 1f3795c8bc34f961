package purgatory

import "github.com/tickless/tickless/internal/closed"

// ErrClosed is returned for an operation that is added after [Purgatory.Close] or
// [Purgatory.Shutdown]. None of its methods is called. errors.Is reports that ErrClosed
// is also a [timer.ErrClosed].
var ErrClosed = closed.New("purgatory: closed")
