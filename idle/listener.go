package idle

import (
	"net"
	"time"
)

// A Listener accepts connections, and closes them when they go silent. Make one with
// [NewListener] or [Conns.Listener].
type Listener struct {
	inner net.Listener
	conns *Conns
}

// NewListener returns a Listener over l. The Listener closes each accepted connection
// when it has neither read nor written for timeout. Closing the Listener does not close
// its connections.
func NewListener(l net.Listener, timeout time.Duration, opts ...ConnsOption) *Listener {
	if l == nil {
		panic("idle: NewListener: the listener must not be nil")
	}
	for i, o := range opts {
		mustNotBeNil("NewListener", i, o)
	}
	return NewConns(timeout, opts...).Listener(l)
}

func (l *Listener) mustNotBeZero() {
	if l.inner == nil {
		panic("idle: a Listener that was not made by NewListener or Conns.Listener")
	}
}

// Accept waits for the next connection. The connection is a [*Conn]. Errors are those of
// the underlying listener.
func (l *Listener) Accept() (net.Conn, error) {
	l.mustNotBeZero()
	conn, err := l.inner.Accept()
	if err != nil {
		return nil, err
	}
	c, err := l.conns.Wrap(conn)
	if err != nil {
		// The Conns is closed.
		conn.Close()
		return nil, &net.OpError{Op: "accept", Net: l.Addr().Network(), Addr: l.Addr(), Err: net.ErrClosed}
	}
	return c, nil
}

// Close closes the underlying listener.
func (l *Listener) Close() error {
	l.mustNotBeZero()
	return l.inner.Close()
}

// Addr returns the listener's address.
func (l *Listener) Addr() net.Addr {
	l.mustNotBeZero()
	return l.inner.Addr()
}

// Conns returns the Conns that watches the connections.
func (l *Listener) Conns() *Conns { return l.conns }

// Stats returns the counts of the Listener's Conns. They include connections that the
// Listener did not accept.
func (l *Listener) Stats() ConnsStats {
	l.mustNotBeZero()
	return l.conns.Stats()
}
