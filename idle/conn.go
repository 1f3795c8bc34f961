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

// A Conn is a connection that is closed when it has neither read nor written for a
// timeout. A pending Read or Write then returns [ErrIdle]. A [Listener] or [Conns.Wrap]
// makes a Conn.
//
// A Read counts as activity when it returns some bytes. A Write or a copy is done in
// pieces of at most 64 KiB, and counts as activity each time that the operating system
// has accepted a whole piece. So a peer must accept at least 64 KiB of a long Write
// within each timeout. Otherwise the connection counts as idle although bytes flow. Bytes
// that the peer sends count when they are read.
//
// Deadlines are those of the underlying connection. A Conn has the methods of
// [*net.TCPConn] and [*net.UnixConn] that code looks for with type assertions. If the
// underlying connection lacks such a method, it returns [errors.ErrUnsupported].
// [io.Copy] to or from a Conn uses sendfile and splice as it would without the Conn.
type Conn struct {
	under net.Conn
	conns *Conns

	entry atomic.Pointer[Entry[*Conn]] // written under mu
	// evicted is set before the connection is closed for being idle.
	evicted atomic.Bool
	// writing is held by Write, so that no other Write comes between its pieces.
	writing sync.Mutex

	mu sync.Mutex
	// All below is guarded by mu.

	timeout time.Duration
	closed  bool // by Close or by an eviction
}

// watch starts watching the connection, unless it is closed.
func (c *Conn) watch() error {
	// Hold the lock until the entry is stored. If the entry falls due before that and
	// onIdle refuses the eviction, idled stores its new entry after this one.
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	e, err := c.conns.monitor.Watch(c, c.timeout)
	if err == nil {
		c.entry.Store(e)
	}
	return err
}

// idled is called by the Monitor when the connection has been found idle.
func (c *Conn) idled(since time.Time) {
	c.mu.Lock() // waits for watch to store the entry
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return
	}
	evict := true
	defer func() {
		if evict {
			c.evict() // also when onIdle panics
		}
	}()
	if c.conns.onIdle != nil {
		evict = c.conns.onIdle(c, since)
	}
	if evict {
		return
	}
	c.conns.count(func(n *ConnsStats) { n.Refused++ })
	if c.watch() != nil {
		c.conns.monitor.addLeftover(&c.entry.Load().entry) // the Conns was closed
	}
}

// evict closes an idle connection, unless it is already closed.
func (c *Conn) evict() {
	c.mu.Lock()
	first := !c.closed
	c.closed = true
	if first {
		c.evicted.Store(true)
	}
	c.mu.Unlock()
	if first {
		c.conns.count(func(n *ConnsStats) { n.Evicted++; n.Open-- })
		c.under.Close()
	}
}

// Close closes the connection and stops watching it at once.
func (c *Conn) Close() error {
	c.conn()
	c.mu.Lock()
	first := !c.closed
	c.closed = true
	if first {
		c.entry.Load().Stop()
	}
	c.mu.Unlock()
	if first {
		c.conns.count(func(n *ConnsStats) { n.Closed++; n.Open-- })
	}
	return c.explain("close", c.under.Close())
}

// conn returns the underlying connection.
func (c *Conn) conn() net.Conn {
	if c.under == nil {
		panic("idle: a Conn that was not made by Conns.Wrap or a Listener")
	}
	return c.under
}

// touch records activity.
func (c *Conn) touch() { c.entry.Load().Touch() }

// explain returns ErrIdle instead of an error that our closing of the connection has
// caused.
func (c *Conn) explain(op string, err error) error {
	if err == nil || !c.evicted.Load() || !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	return &net.OpError{Op: op, Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: ErrIdle}
}

// Read reads from the connection.
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.conn().Read(b)
	if n > 0 {
		c.touch()
	}
	return n, c.explain("read", err)
}

// pieceSize is the largest piece of a Write or a copy. A larger piece would save a few
// percent of a copy's CPU, but count slow peers as idle.
const pieceSize = 64 << 10

// Write writes to the connection. If the network is tcp, unix or pipe, Write splits b
// into pieces of 64 KiB, and each piece counts as activity once it is written. On other
// networks b may be a message: Write does not split it, and counts it when it is written.
func (c *Conn) Write(b []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	piece := len(b)
	if piece > pieceSize && isStream(c.conn()) {
		piece = pieceSize
	}
	written := 0
	for {
		n, err := c.conn().Write(b[written:min(written+piece, len(b))])
		written += n
		if n > 0 {
			c.touch()
		}
		if err != nil || written == len(b) {
			return written, c.explain("write", err)
		}
	}
}

// SetTimeout changes how long the connection may be silent, counted from its last
// activity: a shorter timeout may close the connection at once. SetTimeout panics if
// timeout is not positive.
func (c *Conn) SetTimeout(timeout time.Duration) {
	c.conn()
	checkTimeout("SetTimeout", timeout)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entry.Load().SetTimeout(timeout)
	c.timeout = timeout
}

// Since returns the time of the connection's last activity.
func (c *Conn) Since() time.Time {
	c.conn()
	return c.conns.monitor.Time(c.entry.Load().Last())
}

// NetConn returns the underlying connection. Bytes that you read from it or write to it
// directly do not count as activity.
func (c *Conn) NetConn() net.Conn { return c.conn() }

// LocalAddr returns the local address.
func (c *Conn) LocalAddr() net.Addr { return c.conn().LocalAddr() }

// RemoteAddr returns the remote address.
func (c *Conn) RemoteAddr() net.Addr { return c.conn().RemoteAddr() }

// SetDeadline sets the read and write deadlines of the underlying connection.
func (c *Conn) SetDeadline(t time.Time) error { return c.explain("set", c.conn().SetDeadline(t)) }

// SetReadDeadline sets the read deadline of the underlying connection.
func (c *Conn) SetReadDeadline(t time.Time) error {
	return c.explain("set", c.conn().SetReadDeadline(t))
}

// SetWriteDeadline sets the write deadline of the underlying connection.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	return c.explain("set", c.conn().SetWriteDeadline(t))
}

// CloseRead shuts down the reading side. The connection is still watched: writes count as
// activity.
func (c *Conn) CloseRead() error {
	if u, ok := c.conn().(interface{ CloseRead() error }); ok {
		return c.explain("close", u.CloseRead())
	}
	return unsupported("CloseRead", c.conn())
}

// CloseWrite shuts down the writing side, so that the peer reads an end of file. The
// connection is still watched: reads count as activity.
func (c *Conn) CloseWrite() error {
	if u, ok := c.conn().(interface{ CloseWrite() error }); ok {
		return c.explain("close", u.CloseWrite())
	}
	return unsupported("CloseWrite", c.conn())
}

// SyscallConn returns access to the file descriptor. A successful Read or Write through
// it counts as activity.
//
// A copy from a file goes through ReadFrom, which uses sendfile. Package os does not
// bypass the Conn by using SyscallConn itself.
func (c *Conn) SyscallConn() (syscall.RawConn, error) {
	sc, ok := c.conn().(syscall.Conn)
	if !ok {
		return nil, unsupported("SyscallConn", c.conn())
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return nil, c.explain("raw-control", err)
	}
	return rawConn{rc, c}, nil
}

func unsupported(method string, under net.Conn) error {
	return fmt.Errorf("idle: %s on a %T: %w", method, under, errors.ErrUnsupported)
}

type rawConn struct {
	syscall.RawConn
	c *Conn
}

func (r rawConn) Read(f func(fd uintptr) (done bool)) error {
	return r.c.explain("raw-read", r.RawConn.Read(r.touching(f)))
}

func (r rawConn) Write(f func(fd uintptr) (done bool)) error {
	return r.c.explain("raw-write", r.RawConn.Write(r.touching(f)))
}

func (r rawConn) Control(f func(fd uintptr)) error {
	return r.c.explain("raw-control", r.RawConn.Control(f))
}

func (r rawConn) touching(f func(fd uintptr) bool) func(fd uintptr) bool {
	return func(fd uintptr) bool {
		done := f(fd)
		if done {
			r.c.touch()
		}
		return done
	}
}
