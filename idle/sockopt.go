package idle

import (
	"net"
	"os"
	"time"
)

// What follows is what *net.TCPConn and *net.UnixConn have besides the methods of
// net.Conn, and what code looks for with type assertions. Messages of unix sockets are not
// among them: see Conn.NetConn.

// ask calls a method of the connection underneath, which has the method if it is a U.
func ask[U any](c *Conn, method string, call func(U) error) error {
	u, ok := c.conn().(U)
	if !ok {
		return unsupported(method, c.conn())
	}
	return c.explain("set", call(u))
}

// SetKeepAlive is the underlying connection's.
func (c *Conn) SetKeepAlive(on bool) error {
	return ask(c, "SetKeepAlive", func(u interface{ SetKeepAlive(bool) error }) error { return u.SetKeepAlive(on) })
}

// SetKeepAlivePeriod is the underlying connection's.
func (c *Conn) SetKeepAlivePeriod(d time.Duration) error {
	return ask(c, "SetKeepAlivePeriod", func(u interface {
		SetKeepAlivePeriod(time.Duration) error
	}) error {
		return u.SetKeepAlivePeriod(d)
	})
}

// SetKeepAliveConfig is the underlying connection's.
func (c *Conn) SetKeepAliveConfig(config net.KeepAliveConfig) error {
	return ask(c, "SetKeepAliveConfig", func(u interface {
		SetKeepAliveConfig(net.KeepAliveConfig) error
	}) error {
		return u.SetKeepAliveConfig(config)
	})
}

// SetNoDelay is the underlying connection's.
func (c *Conn) SetNoDelay(on bool) error {
	return ask(c, "SetNoDelay", func(u interface{ SetNoDelay(bool) error }) error { return u.SetNoDelay(on) })
}

// SetLinger is the underlying connection's.
func (c *Conn) SetLinger(sec int) error {
	return ask(c, "SetLinger", func(u interface{ SetLinger(int) error }) error { return u.SetLinger(sec) })
}

// SetReadBuffer is the underlying connection's.
func (c *Conn) SetReadBuffer(bytes int) error {
	return ask(c, "SetReadBuffer", func(u interface{ SetReadBuffer(int) error }) error { return u.SetReadBuffer(bytes) })
}

// SetWriteBuffer is the underlying connection's.
func (c *Conn) SetWriteBuffer(bytes int) error {
	return ask(c, "SetWriteBuffer", func(u interface{ SetWriteBuffer(int) error }) error { return u.SetWriteBuffer(bytes) })
}

// MultipathTCP is the underlying connection's.
func (c *Conn) MultipathTCP() (on bool, err error) {
	err = ask(c, "MultipathTCP", func(u interface{ MultipathTCP() (bool, error) }) (err error) {
		on, err = u.MultipathTCP()
		return err
	})
	return on, err
}

// File returns a copy of the underlying connection's file descriptor. What goes through
// it does not count as activity.
func (c *Conn) File() (f *os.File, err error) {
	err = ask(c, "File", func(u interface{ File() (*os.File, error) }) (err error) {
		f, err = u.File()
		return err
	})
	return f, err
}
