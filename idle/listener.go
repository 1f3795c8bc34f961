package idle

import (
	"net"
	"time"
)

// A Listener closes the connections that it has accepted and that have gone
// silent. Make one with [NewListener] or [Conns.Listener].
type Listener struct {
	under net.Listener
	conns *Conns
}

// NewListener returns a Listener over l which closes every connection that it
// has accepted and that has neither read nor written for timeout.
//
// Closing the Listener leaves its connections open and watched, so that a server can
// shut down gracefully.
func NewListener(l net.Listener, timeout time.Duration, opts ...ConnsOption) *Listener {
	if l == nil {
		panic("idle: NewListener with a nil listener")
	}
	for i, o := range opts {
		notNil("NewListener", i, o)
	}
	return NewConns(timeout, opts...).Listener(l)
}

func (l *Listener) mustBeMade() {
	if l.under == nil {
		panic("idle: a Listener that was not made by NewListener or Conns.Listener")
	}
}

// Accept waits for the next connection. The connection is a [*Conn]. Errors are those
// of the listener underneath.
func (l *Listener) Accept() (net.Conn, error) {
	l.mustBeMade()
	under, err := l.under.Accept()
	if err != nil {
		return nil, err
	}
	c, err := l.conns.Wrap(under)
	if err != nil {
		// Somebody has closed its Conns.
		under.Close()
		return nil, &net.OpError{Op: "accept", Net: l.Addr().Network(), Addr: l.Addr(), Err: net.ErrClosed}
	}
	return c, nil
}

// Close closes the listener underneath.
func (l *Listener) Close() error {
	l.mustBeMade()
	return l.under.Close()
}

// Addr returns the listener's address.
func (l *Listener) Addr() net.Addr {
	l.mustBeMade()
	return l.under.Addr()
}

// Conns returns what watches the connections.
func (l *Listener) Conns() *Conns { return l.conns }

// Stats returns the counts of all connections of its Conns.
func (l *Listener) Stats() ConnsStats {
	l.mustBeMade()
	return l.conns.Stats()
}
