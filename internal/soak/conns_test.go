package soak

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/idle"
)

// A link is a connection and its peer. The connection is closed after d without activity.
type link struct {
	n    *note
	d    time.Duration
	c    *idle.Conn
	peer net.Conn
}

// conns makes connections over the loopback interface. Some are read, written to or
// closed. The others are left alone until they are evicted.
func conns(t *testing.T) (kind, *idle.Listener) {
	under, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	from := idle.NewListener(under, time.Hour)
	var all [10]*link
	return kind{"conns", false, func(l *ledger, rng *rand.Rand, longest time.Duration) {
		i := rng.IntN(len(all))
		x := all[i]
		switch {
		case rng.IntN(50) == 0:
			if x != nil {
				x.n.stop(x.close)
			}
			all[i] = connect(l, from, delay(rng, longest)+10*time.Millisecond)
		case x == nil:
		case rng.IntN(10) == 0:
			x.n.move(x.d, x.read)
		case rng.IntN(10) == 0:
			x.n.move(x.d, x.write)
		}
	}}, from
}

// connect makes a connection. If that fails, it complains to the ledger and returns nil.
func connect(l *ledger, from *idle.Listener, d time.Duration) *link {
	peer, err := net.Dial("tcp", from.Addr().String())
	if err != nil {
		l.complain("%v", err)
		return nil
	}
	n := l.enter(d)
	c, err := from.Accept()
	if err != nil {
		peer.Close()
		l.complain("%v", err)
		return nil
	}
	x := &link{n, d, c.(*idle.Conn), peer}
	x.c.SetTimeout(d)
	go x.follow()
	return x
}

// follow reads what the peer receives until the connection is closed. Then wasIdle tells
// which side has closed it.
func (x *link) follow() {
	io.Copy(io.Discard, x.peer)
	x.peer.Close()
	if x.wasIdle() {
		x.n.fire()
	}
}

// wasIdle reports whether the closed connection was closed for being idle.
func (x *link) wasIdle() bool {
	_, err := x.c.Read(make([]byte, 1))
	return errors.Is(err, idle.ErrIdle)
}

// close closes the connection, and reports whether it was open.
func (x *link) close() bool {
	x.c.Close()
	return !x.wasIdle()
}

func (x *link) read() bool {
	return x.active(func(b []byte) error {
		if _, err := x.peer.Write(b); err != nil {
			return err
		}
		_, err := x.c.Read(b)
		return err
	})
}

func (x *link) write() bool {
	return x.active(func(b []byte) error {
		_, err := x.c.Write(b)
		return err
	})
}

// active reports whether f kept the connection open by moving a byte. It reports false if
// the connection had already been chosen for eviction.
func (x *link) active(f func(b []byte) error) bool {
	began := time.Now()
	return f(make([]byte, 1)) == nil && !x.c.Since().Before(began)
}
