package idle

import (
	"net"

	"github.com/tickless/tickless/internal/closed"
)

var (
	// ErrClosed is returned by Watch and Wrap after Close or Shutdown.
	// errors.Is(ErrClosed, timer.ErrClosed) is true.
	ErrClosed = closed.New("idle: closed")
	// ErrIdle is returned by reads and writes on a connection that was closed for being
	// idle. Compare with [errors.Is]. ErrIdle wraps [net.ErrClosed].
	ErrIdle error = idleError{}
)

type idleError struct{}

func (idleError) Error() string { return "closed for being idle" }
func (idleError) Unwrap() error { return net.ErrClosed }
