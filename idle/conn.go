package idle

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"go.uber.org/atomic"
)

// A Conn is a connection that is closed when it has neither read nor written for its
// timeout. A pending Read or Write then returns [ErrIdle]. Make a Conn with a [Listener]
// or [Conns.Wrap].
//
// A Read counts as activity when it returns bytes. A Write or a copy sends pieces of at
// most 64 KiB, and each piece counts as activity when it has been written. On Linux, it is
// also activity when the peer acknowledges bytes that wait in the send buffer of a
// *[net.TCPConn], or of one under a TLS connection. Elsewhere the buffer is not seen: the
// peer must accept 64 KiB within each timeout, and more if the system lets a Write wait
// until a part of the buffer is free.
//
// [net.Buffers.WriteTo] writes each buffer to a Conn by itself, so what several goroutines
// write may mix. Use [Conn.WriteBuffers].
//
// Set socket options on the underlying connection: see [Conn.NetConn]. Methods that it
// lacks return [errors.ErrUnsupported].
type Conn struct {
	inner net.Conn
	tcp   *net.TCPConn // inner, or what is under it; nil if it is another type
	conns *Conns
	entry *Entry[*Conn] // set by Wrap, which holds mu meanwhile

	// evicted is set just before the connection is closed for being idle.
	evicted atomic.Bool
	// Write holds writeMu, so that the pieces of two Writes do not mix.
	writeMu sync.Mutex

	// acked is how many bytes the peer had acknowledged at the last check. Guarded by the
	// lock of the entry's stripe.
	acked uint64

	mu     sync.Mutex
	closed bool // by Close or by an eviction; guarded by mu
}

// isClosed reports whether the connection is closed. If Wrap is watching it just now,
// isClosed waits for Wrap.
func (c *Conn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// closeIdle is the Monitor's callback: it closes an idle connection, unless it is already
// closed.
func (c *Conn) closeIdle(time.Time) {
	c.mu.Lock()
	wasOpen := !c.closed
	c.closed = true
	if wasOpen {
		c.evicted.Store(true)
	}
	c.mu.Unlock()
	if wasOpen {
		c.conns.updateStats(func(s *ConnsStats) { s.Evicted++; s.Open-- })
		c.inner.Close()
	}
}

// Close closes the connection and stops watching it.
func (c *Conn) Close() error {
	c.mustInner()
	c.mu.Lock()
	wasOpen := !c.closed
	c.closed = true
	if wasOpen {
		c.entry.Stop()
	}
	c.mu.Unlock()
	if wasOpen {
		c.conns.updateStats(func(s *ConnsStats) { s.Closed++; s.Open-- })
	}
	return c.asErrIdle("close", c.inner.Close())
}

// mustInner returns the underlying connection. It panics if c is a zero Conn.
func (c *Conn) mustInner() net.Conn {
	if c.inner == nil {
		panic("idle: a Conn that was not made by Conns.Wrap or a Listener")
	}
	return c.inner
}

// touch records activity.
func (c *Conn) touch() { c.entry.Touch() }

// asErrIdle returns ErrIdle if the reason for err is that the connection was closed for
// being idle. Otherwise it returns err.
func (c *Conn) asErrIdle(op string, err error) error {
	if err == nil || !c.evicted.Load() || !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	opErr := &net.OpError{Op: op, Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: ErrIdle}
	if opErr.Source != nil {
		opErr.Net = opErr.Source.Network()
	}
	return opErr
}

// Read reads from the connection.
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.mustInner().Read(b)
	if n > 0 {
		c.touch()
	}
	return n, c.asErrIdle("read", err)
}

// maxPieceLen is the length of the largest piece of a Write or a copy. Smaller pieces
// cost more CPU. With larger pieces, more slow peers count as idle.
const maxPieceLen = 64 << 10

// Write writes b to the connection: in pieces of 64 KiB on the networks tcp, unix and
// pipe, in one piece on other networks, where b may be a message.
func (c *Conn) Write(b []byte) (int, error) {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	pieceLen := len(b)
	if pieceLen > maxPieceLen && isStream(c.mustInner()) {
		pieceLen = maxPieceLen
	}
	written := 0
	for {
		n, err := c.mustInner().Write(b[written:min(written+pieceLen, len(b))])
		written += n
		if n > 0 {
			c.touch()
		}
		if err != nil || written == len(b) {
			return written, c.asErrIdle("write", err)
		}
	}
}

// WriteBuffers writes the contents of v, which it consumes as [net.Buffers.WriteTo] does.
// It does not mix with other writes, and uses writev if the underlying connection does.
// If the peer takes longer than the timeout for all of it, and its acknowledgements are
// not seen, the connection counts as idle.
func (c *Conn) WriteBuffers(v *net.Buffers) (int64, error) {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	n, err := v.WriteTo(c.mustInner())
	if n > 0 {
		c.touch()
	}
	return n, c.asErrIdle("writev", err)
}

// deliveredLocked returns when the peer acknowledged the last bytes, if that was since the
// last call, or 0. The caller holds the lock of the entry's stripe.
func (c *Conn) deliveredLocked(now Moment) Moment {
	if c.tcp == nil {
		return 0
	}
	acked, ago := acknowledged(c.tcp)
	if acked == c.acked {
		return 0
	}
	c.acked = acked
	return now - Moment(ago)
}

// SetTimeout changes the timeout, which counts from the last activity. If a shorter
// timeout has already passed, the connection is closed. SetTimeout panics if timeout is
// not positive.
func (c *Conn) SetTimeout(timeout time.Duration) {
	c.mustInner()
	c.entry.SetTimeout(timeout)
}

// Since returns the time of the connection's last activity.
func (c *Conn) Since() time.Time {
	c.mustInner()
	return c.conns.monitor.Time(c.entry.Last())
}

// NetConn returns the underlying connection. Bytes that you read from it or write to it
// directly do not count as activity.
func (c *Conn) NetConn() net.Conn { return c.mustInner() }

// LocalAddr returns the local address.
func (c *Conn) LocalAddr() net.Addr { return c.mustInner().LocalAddr() }

// RemoteAddr returns the remote address.
func (c *Conn) RemoteAddr() net.Addr { return c.mustInner().RemoteAddr() }

// SetDeadline sets the read and write deadlines of the underlying connection.
func (c *Conn) SetDeadline(t time.Time) error {
	return c.asErrIdle("set", c.mustInner().SetDeadline(t))
}

// SetReadDeadline sets the read deadline of the underlying connection.
func (c *Conn) SetReadDeadline(t time.Time) error {
	return c.asErrIdle("set", c.mustInner().SetReadDeadline(t))
}

// SetWriteDeadline sets the write deadline of the underlying connection.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	return c.asErrIdle("set", c.mustInner().SetWriteDeadline(t))
}

// CloseRead shuts down the reading side. The connection is still watched: writes count as
// activity.
func (c *Conn) CloseRead() error {
	if u, ok := c.mustInner().(interface{ CloseRead() error }); ok {
		return c.asErrIdle("close", u.CloseRead())
	}
	return unsupportedError("CloseRead", c.mustInner())
}

// CloseWrite shuts down the writing side, so that the peer reads an end of file. The
// connection is still watched: reads count as activity.
func (c *Conn) CloseWrite() error {
	if u, ok := c.mustInner().(interface{ CloseWrite() error }); ok {
		return c.asErrIdle("close", u.CloseWrite())
	}
	return unsupportedError("CloseWrite", c.mustInner())
}

// SyscallConn returns access to the file descriptor. Bytes that are read or written with
// it do not count as activity.
func (c *Conn) SyscallConn() (syscall.RawConn, error) {
	sc, ok := c.mustInner().(syscall.Conn)
	if !ok {
		return nil, unsupportedError("SyscallConn", c.mustInner())
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return nil, c.asErrIdle("raw-control", err)
	}
	// Package os must not see the other methods of rc: it would copy a file past the Conn.
	return struct{ syscall.RawConn }{rc}, nil
}

func unsupportedError(method string, inner net.Conn) error {
	return fmt.Errorf("idle: %s on a %T: %w", method, inner, errors.ErrUnsupported)
}
