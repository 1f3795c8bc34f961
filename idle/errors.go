package idle

import (
	"net"

	"github.com/tickless/tickless/internal/closed"
)

var (
	// ErrClosed is returned by Watch and Wrap after Close or Shutdown. It matches
	// [timer.ErrClosed] too, as errors.Is reports.
	ErrClosed = closed.New("idle: closed")
	// ErrIdle is the error of reads and writes on a connection that was closed for being
	// idle. It wraps [net.ErrClosed]. Methods return it inside a [net.OpError], so
	// compare with [errors.Is].
	ErrIdle error = idleError{}
)

type idleError struct{}

func (idleError) Error() string { return "closed for being idle" }
func (idleError) Unwrap() error { return net.ErrClosed }
