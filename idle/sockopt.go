package idle

import (
	"net"
	"os"
	"time"
)

// The methods below are those of *net.TCPConn and *net.UnixConn that net.Conn lacks,
// without those for messages. Programs look for them with type assertions.

// callInner calls a method of the underlying connection. U is an interface that has the
// method.
func callInner[U any](c *Conn, method string, call func(U) error) error {
	u, ok := c.mustInner().(U)
	if !ok {
		return unsupportedError(method, c.mustInner())
	}
	return c.asErrIdle("set", call(u))
}

// SetKeepAlive calls the same method of the underlying connection.
func (c *Conn) SetKeepAlive(on bool) error {
	return callInner(c, "SetKeepAlive", func(u interface{ SetKeepAlive(bool) error }) error { return u.SetKeepAlive(on) })
}

// SetKeepAlivePeriod calls the same method of the underlying connection.
func (c *Conn) SetKeepAlivePeriod(d time.Duration) error {
	return callInner(c, "SetKeepAlivePeriod", func(u interface {
		SetKeepAlivePeriod(time.Duration) error
	}) error {
		return u.SetKeepAlivePeriod(d)
	})
}

// SetKeepAliveConfig calls the same method of the underlying connection.
func (c *Conn) SetKeepAliveConfig(config net.KeepAliveConfig) error {
	return callInner(c, "SetKeepAliveConfig", func(u interface {
		SetKeepAliveConfig(net.KeepAliveConfig) error
	}) error {
		return u.SetKeepAliveConfig(config)
	})
}

// SetNoDelay calls the same method of the underlying connection.
func (c *Conn) SetNoDelay(on bool) error {
	return callInner(c, "SetNoDelay", func(u interface{ SetNoDelay(bool) error }) error { return u.SetNoDelay(on) })
}

// SetLinger calls the same method of the underlying connection.
func (c *Conn) SetLinger(sec int) error {
	return callInner(c, "SetLinger", func(u interface{ SetLinger(int) error }) error { return u.SetLinger(sec) })
}

// SetReadBuffer calls the same method of the underlying connection.
func (c *Conn) SetReadBuffer(bytes int) error {
	return callInner(c, "SetReadBuffer", func(u interface{ SetReadBuffer(int) error }) error { return u.SetReadBuffer(bytes) })
}

// SetWriteBuffer calls the same method of the underlying connection.
func (c *Conn) SetWriteBuffer(bytes int) error {
	return callInner(c, "SetWriteBuffer", func(u interface{ SetWriteBuffer(int) error }) error { return u.SetWriteBuffer(bytes) })
}

// MultipathTCP calls the same method of the underlying connection.
func (c *Conn) MultipathTCP() (on bool, err error) {
	err = callInner(c, "MultipathTCP", func(u interface{ MultipathTCP() (bool, error) }) (err error) {
		on, err = u.MultipathTCP()
		return err
	})
	return on, err
}

// File returns a copy of the underlying connection's file descriptor. Reads and writes
// through the copy do not count as activity.
func (c *Conn) File() (f *os.File, err error) {
	err = callInner(c, "File", func(u interface{ File() (*os.File, error) }) (err error) {
		f, err = u.File()
		return err
	})
	return f, err
}
