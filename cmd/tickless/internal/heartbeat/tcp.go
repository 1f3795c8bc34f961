package heartbeat

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"

	"go.uber.org/atomic"
)

// dialers is how many connections are made at a time.
const dialers = 32

// tcpTransport has both ends of all connections, over the loopback interface.
type tcpTransport struct {
	address string // without a port
	side    server

	run     *run
	servers []*net.TCPConn
	clients []*net.TCPConn
	serving sync.WaitGroup
}

// A server serves connections, and evicts the silent ones.
type server interface {
	Name() string
	// Open is called once, before the first Serve.
	Open(r *run)
	// Serve reads heartbeats until the connection ends.
	Serve(conn int, c *net.TCPConn)
	// Close is called when no Serve is under way.
	Close() error
}

func (t *tcpTransport) open(ctx context.Context, r *run) error {
	t.run = r
	n := r.plan.conns
	t.servers, t.clients = make([]*net.TCPConn, n), make([]*net.TCPConn, n)
	l, err := net.Listen("tcp", net.JoinHostPort(t.address, "0"))
	if err != nil {
		return err
	}
	var accepting sync.WaitGroup
	accepted := make(chan error, 1)
	accepting.Go(func() { accepted <- t.accept(l) })
	var dialing sync.WaitGroup
	var next atomic.Int64
	failed := make(chan error, dialers)
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(t.address)}, KeepAlive: -1}
	for range dialers {
		dialing.Go(func() {
			for i := next.Inc() - 1; i < int64(n); i = next.Inc() - 1 {
				c, err := d.DialContext(ctx, "tcp", l.Addr().String())
				if err != nil {
					failed <- err
					return
				}
				t.clients[i] = c.(*net.TCPConn)
				if _, err := c.Write(binary.BigEndian.AppendUint32(nil, uint32(i))); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	dialing.Wait()
	select {
	case err = <-failed:
		l.Close()
		<-accepted
	default:
		err = <-accepted
		l.Close()
	}
	accepting.Wait()
	return err
}

// accept takes as many connections as there are, each of which tells its number.
func (t *tcpTransport) accept(l net.Listener) error {
	for range t.servers {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		var hello [4]byte
		if _, err := io.ReadFull(c, hello[:]); err != nil {
			c.Close()
			return err
		}
		i := binary.BigEndian.Uint32(hello[:])
		if i >= uint32(len(t.servers)) || t.servers[i] != nil {
			c.Close()
			return fmt.Errorf("a connection that is none of ours: %v", c.RemoteAddr())
		}
		t.servers[i] = c.(*net.TCPConn)
	}
	return nil
}

func (t *tcpTransport) begin() error {
	t.side.Open(t.run)
	for i, c := range t.servers {
		t.serving.Go(func() {
			t.side.Serve(i, c)
			c.Close()
		})
	}
	return nil
}

func (t *tcpTransport) send(beats []beat) error {
	payload := []byte("alive\n")
	for _, b := range beats {
		// A connection may have been evicted wrongly, for heartbeats that came
		// too late: that is counted elsewhere.
		_, _ = t.clients[b.conn].Write(payload)
	}
	return nil
}

// held leaves out the evicted: their goroutines have ended.
func (t *tcpTransport) held(evicted int) int { return len(t.servers) - evicted }

func (t *tcpTransport) end() {
	for _, c := range t.clients {
		if c != nil {
			_ = c.SetLinger(0) // so that no port stays in use
			c.Close()
		}
	}
	t.serving.Wait()
	for _, c := range t.servers {
		if c != nil {
			c.Close()
		}
	}
	if t.run != nil {
		_ = t.side.Close()
	}
}
