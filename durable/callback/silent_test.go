package callback

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// pipes is a listener and its dialer. They are connected by in-memory pipes.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	dialed []*silent
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	p.conns <- there
	c := &silent{Conn: here}
	p.dialed = append(p.dialed, c)
	return c, nil
}

// silent is a connection that can drop what is written to it, as a NAT may do.
type silent struct {
	net.Conn
	drops atomic.Bool
}

func (c *silent) Write(b []byte) (int, error) {
	if c.drops.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// If an HTTP/2 connection silently drops packets, its request is sent once more, on a new
// connection.
func TestCaller_SilentConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor != 2 {
				t.Error(r.Proto)
			}
		}))
		s.Listener.Close()
		s.Listener, s.EnableHTTP2 = p, true
		s.StartTLS()
		defer s.Close()
		c := New(loopback)
		defer c.Close()
		c.transport.DialContext = p.dial
		c.transport.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
		r := Request{URL: "https://127.0.0.1/"}

		require.NoError(t, call(t, c, r))
		require.NoError(t, call(t, c, r))
		require.Len(t, p.dialed, 1)
		p.dialed[0].drops.Store(true)
		begin := time.Now()
		require.NoError(t, call(t, c, r))
		require.LessOrEqual(t, time.Since(begin), DefaultTimeout)
		require.Len(t, p.dialed, 2)

		// If a connection breaks while it is idle, no request fails.
		p.dialed[1].drops.Store(true)
		time.Sleep(time.Minute)
		require.NoError(t, call(t, c, r))
		require.Len(t, p.dialed, 3)
	})
}

// A receiver that switches protocols and then sends nothing does not block the handler.
func TestCaller_SwitchedProtocols(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		c := New(loopback)
		defer c.Close()
		c.transport.DialContext = func(context.Context, string, string) (net.Conn, error) { return here, nil }
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			if _, err := http.ReadRequest(bufio.NewReader(there)); err != nil {
				t.Error(err)
			}
			if _, err := io.WriteString(there, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"); err != nil {
				t.Error(err)
			}
			_, _ = io.Copy(io.Discard, there)
		}()
		hangs := time.AfterFunc(time.Hour, func() { there.Close() })
		defer hangs.Stop()
		begin := time.Now()
		err := call(t, c, Request{URL: "http://127.0.0.1/"})
		require.ErrorContains(t, err, "101 Switching Protocols")
		require.True(t, isDead(err))
		require.LessOrEqual(t, time.Since(begin), DefaultTimeout)
		<-closed
		there.Close()
	})
}
