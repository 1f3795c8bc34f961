package httptimeout

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// An upgradeCtx is the context of a request with an Upgrade header. It ends when its
// inner context ends. After a 101 response, dropTimeout replaces the inner context by
// one without a timeout.
type upgradeCtx struct {
	done chan struct{}

	mu          sync.Mutex
	innerCtx    context.Context // does not change after err is set
	cancelInner context.CancelFunc
	detachInner func() bool // returns false if innerCtx has ended, which ends this context
	err         error       // set when done is closed
}

var _ context.Context = (*upgradeCtx)(nil)

// newUpgradeCtx returns a context whose inner context is timedCtx. cancelTimed cancels
// timedCtx.
func newUpgradeCtx(timedCtx context.Context, cancelTimed context.CancelFunc) *upgradeCtx {
	c := &upgradeCtx{done: make(chan struct{})}
	c.mu.Lock()
	c.setInnerCtxLocked(timedCtx, cancelTimed)
	c.mu.Unlock()
	return c
}

func (c *upgradeCtx) setInnerCtxLocked(ctx context.Context, cancel context.CancelFunc) {
	c.innerCtx, c.cancelInner = ctx, cancel
	c.detachInner = context.AfterFunc(ctx, c.closeDone)
}

// dropTimeout replaces the inner context by a child of parent, without a timeout. If
// the inner context has already ended, dropTimeout does nothing.
func (c *upgradeCtx) dropTimeout(parent context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.detachInner() {
		return
	}
	cancelTimed := c.cancelInner
	c.setInnerCtxLocked(context.WithCancel(parent))
	cancelTimed()
}

// cancel ends c and its inner context, which stops the timer.
func (c *upgradeCtx) cancel() {
	c.mu.Lock()
	cancelInner := c.cancelInner
	c.mu.Unlock()
	cancelInner()
	c.closeDone()
}

// closeDone ends c with the error of its inner context.
func (c *upgradeCtx) closeDone() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = c.innerCtx.Err()
		close(c.done)
	}
}

func (c *upgradeCtx) Done() <-chan struct{} { return c.done }

func (c *upgradeCtx) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *upgradeCtx) Deadline() (time.Time, bool) { return c.currentInnerCtx().Deadline() }

// Value also serves [context.Cause], which looks up the cause by key.
func (c *upgradeCtx) Value(key any) any { return c.currentInnerCtx().Value(key) }

func (c *upgradeCtx) currentInnerCtx() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.innerCtx
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
