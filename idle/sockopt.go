package idle

import (
	"net"
	"os"
	"time"
)

// The methods below are those of *net.TCPConn and *net.UnixConn that net.Conn lacks and
// that code looks for with type assertions. The methods for messages of unix sockets are
// missing: see Conn.NetConn.

// ask calls a method of the underlying connection, if that is a U, which has the method.
func ask[U any](c *Conn, method string, call func(U) error) error {
	u, ok := c.conn().(U)
	if !ok {
		return unsupported(method, c.conn())
	}
	return c.explain("set", call(u))
}

// SetKeepAlive calls the method of the underlying connection.
func (c *Conn) SetKeepAlive(on bool) error {
	return ask(c, "SetKeepAlive", func(u interface{ SetKeepAlive(bool) error }) error { return u.SetKeepAlive(on) })
}

// SetKeepAlivePeriod calls the method of the underlying connection.
func (c *Conn) SetKeepAlivePeriod(d time.Duration) error {
	return ask(c, "SetKeepAlivePeriod", func(u interface {
		SetKeepAlivePeriod(time.Duration) error
	}) error {
		return u.SetKeepAlivePeriod(d)
	})
}

// SetKeepAliveConfig calls the method of the underlying connection.
func (c *Conn) SetKeepAliveConfig(config net.KeepAliveConfig) error {
	return ask(c, "SetKeepAliveConfig", func(u interface {
		SetKeepAliveConfig(net.KeepAliveConfig) error
	}) error {
		return u.SetKeepAliveConfig(config)
	})
}

// SetNoDelay calls the method of the underlying connection.
func (c *Conn) SetNoDelay(on bool) error {
	return ask(c, "SetNoDelay", func(u interface{ SetNoDelay(bool) error }) error { return u.SetNoDelay(on) })
}

// SetLinger calls the method of the underlying connection.
func (c *Conn) SetLinger(sec int) error {
	return ask(c, "SetLinger", func(u interface{ SetLinger(int) error }) error { return u.SetLinger(sec) })
}

// SetReadBuffer calls the method of the underlying connection.
func (c *Conn) SetReadBuffer(bytes int) error {
	return ask(c, "SetReadBuffer", func(u interface{ SetReadBuffer(int) error }) error { return u.SetReadBuffer(bytes) })
}

// SetWriteBuffer calls the method of the underlying connection.
func (c *Conn) SetWriteBuffer(bytes int) error {
	return ask(c, "SetWriteBuffer", func(u interface{ SetWriteBuffer(int) error }) error { return u.SetWriteBuffer(bytes) })
}

// MultipathTCP calls the method of the underlying connection.
func (c *Conn) MultipathTCP() (on bool, err error) {
	err = ask(c, "MultipathTCP", func(u interface{ MultipathTCP() (bool, error) }) (err error) {
		on, err = u.MultipathTCP()
		return err
	})
	return on, err
}

// File returns a copy of the underlying connection's file descriptor. Reads and writes
// through the copy do not count as activity.
func (c *Conn) File() (f *os.File, err error) {
	err = ask(c, "File", func(u interface{ File() (*os.File, error) }) (err error) {
		f, err = u.File()
		return err
	})
	return f, err
}
