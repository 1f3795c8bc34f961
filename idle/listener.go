package idle

import (
	"net"
	"time"
)

// A Listener closes its accepted connections when they have gone silent. Make one with
// [NewListener] or [Conns.Listener].
type Listener struct {
	under net.Listener
	conns *Conns
}

// NewListener returns a Listener over l. The Listener closes each accepted connection
// when it has neither read nor written for timeout.
//
// Closing the Listener leaves its connections open and watched, so that a server can shut
// down gracefully.
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

// Accept waits for the next connection. The connection is a [*Conn]. Errors are those of
// the underlying listener.
func (l *Listener) Accept() (net.Conn, error) {
	l.mustBeMade()
	under, err := l.under.Accept()
	if err != nil {
		return nil, err
	}
	c, err := l.conns.Wrap(under)
	if err != nil {
		// The Conns has been closed.
		under.Close()
		return nil, &net.OpError{Op: "accept", Net: l.Addr().Network(), Addr: l.Addr(), Err: net.ErrClosed}
	}
	return c, nil
}

// Close closes the underlying listener.
func (l *Listener) Close() error {
	l.mustBeMade()
	return l.under.Close()
}

// Addr returns the listener's address.
func (l *Listener) Addr() net.Addr {
	l.mustBeMade()
	return l.under.Addr()
}

// Conns returns the Conns that watches the connections.
func (l *Listener) Conns() *Conns { return l.conns }

// Stats returns the counts of the Listener's Conns, which include connections from
// elsewhere.
func (l *Listener) Stats() ConnsStats {
	l.mustBeMade()
	return l.conns.Stats()
}
