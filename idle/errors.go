package idle

import (
	"errors"
	"net"
)

var (
	// ErrClosed is returned for what was to be watched after Close or Shutdown.
	ErrClosed = errors.New("idle: closed")
	// ErrTooMany is returned for what would be one more than [WithMaxWatched]
	// allows.
	ErrTooMany = errors.New("idle: too many watched")
	// ErrIdle is the error of reads and writes on a connection that was closed
	// for being idle. It wraps [net.ErrClosed]. It comes inside a [net.OpError],
	// so compare with [errors.Is].
	ErrIdle error = idleError{}
)

type idleError struct{}

func (idleError) Error() string { return "closed for being idle" }
func (idleError) Unwrap() error { return net.ErrClosed }
