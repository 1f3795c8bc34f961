package idle

import (
	"net"

	"github.com/tickless/tickless/internal/closed"
)

var (
	// ErrClosed is returned by Watch and Wrap after Close or Shutdown. errors.Is
	// reports that it is [timer.ErrClosed] too.
	ErrClosed = closed.New("idle: closed")
	// ErrIdle is the error of reads and writes on a connection that was closed
	// for being idle. It wraps [net.ErrClosed]. It comes inside a [net.OpError],
	// so compare with [errors.Is].
	ErrIdle error = idleError{}
)

type idleError struct{}

func (idleError) Error() string { return "closed for being idle" }
func (idleError) Unwrap() error { return net.ErrClosed }
