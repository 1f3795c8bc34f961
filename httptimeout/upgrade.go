package httptimeout

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"time"

	"go.uber.org/atomic"
)

// An upgradeCtx is the context of a request with an Upgrade header. It has a timeout until
// dropTimeout is called, after a 101 response.
type upgradeCtx struct {
	context.Context // without the timeout, which ends it with the cause DeadlineExceeded
	cancelCause     context.CancelCauseFunc
	deadline        time.Time
	timer           *time.Timer
	timeoutDropped  atomic.Bool
}

// newUpgradeCtx returns an upgradeCtx. The caller must call its method cancel.
func newUpgradeCtx(parent context.Context, timeout time.Duration) *upgradeCtx {
	ctx, cancel := context.WithCancelCause(parent)
	timer := time.AfterFunc(timeout, func() { cancel(context.DeadlineExceeded) })
	return &upgradeCtx{Context: ctx, cancelCause: cancel, deadline: time.Now().Add(timeout), timer: timer}
}

func (c *upgradeCtx) cancel() {
	c.timer.Stop()
	c.cancelCause(nil)
}

// dropTimeout ends the timeout. If it has already passed, dropTimeout does nothing.
func (c *upgradeCtx) dropTimeout() {
	if c.timer.Stop() {
		c.timeoutDropped.Store(true)
	}
}

func (c *upgradeCtx) Err() error {
	if context.Cause(c.Context) == context.DeadlineExceeded {
		return context.DeadlineExceeded
	}
	return c.Context.Err()
}

func (c *upgradeCtx) Deadline() (time.Time, bool) {
	at, ok := c.Context.Deadline()
	if c.timeoutDropped.Load() || ok && at.Before(c.deadline) {
		return at, ok
	}
	return c.deadline, true
}

// An upgradeWriter is the ResponseWriter of a request with an Upgrade header. It notices
// when the handler takes over the connection.
type upgradeWriter struct {
	http.ResponseWriter
	onHijack func()
}

// Unwrap is called by [http.ResponseController].
func (w *upgradeWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Hijack implements [http.Hijacker], which handlers look for with a type assertion.
func (w *upgradeWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.onHijack()
	}
	return c, rw, err
}

// Flush implements [http.Flusher].
func (w *upgradeWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// ReadFrom implements [io.ReaderFrom], with which files are sent by the kernel.
func (w *upgradeWriter) ReadFrom(r io.Reader) (int64, error) { return io.Copy(w.ResponseWriter, r) }
