//go:build unix

package chaos

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A proxy passes data between a client and a server, and causes faults.
type proxy struct {
	l      net.Listener
	server string
	delay  time.Duration // each way
	// request gets the client's data, and reply the server's data. If a function returns
	// false, the proxy drops the data and closes the connection.
	request, reply func([]byte) bool

	mu    sync.Mutex
	holes []*atomic.Bool // for each connection: whether its data is dropped
	conns []net.Conn
	all   sync.WaitGroup
}

func newProxy(t *testing.T, server string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l, server: server}
	t.Cleanup(func() {
		l.Close()
		p.cut()
		p.all.Wait()
	})
	return p
}

func (p *proxy) addr() string { return p.l.Addr().String() }

// serve starts the proxy. The fields of the proxy must be set before.
func (p *proxy) serve() {
	p.all.Go(func() {
		for {
			c, err := p.l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", p.server)
			if err != nil {
				c.Close()
				continue
			}
			hole := new(atomic.Bool)
			p.mu.Lock()
			p.holes = append(p.holes, hole)
			p.conns = append(p.conns, c, s)
			p.mu.Unlock()
			p.all.Go(func() { p.copy(s, c, hole, p.request) })
			p.all.Go(func() { p.copy(c, s, hole, p.reply) })
		}
	})
}

func (p *proxy) copy(to, from net.Conn, hole *atomic.Bool, look func([]byte) bool) {
	defer to.Close()
	defer from.Close()
	b := make([]byte, 256<<10)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		if hole.Load() {
			continue
		}
		if look != nil && !look(b[:n]) {
			return
		}
		time.Sleep(p.delay)
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

// swallow drops all further data of the current connections, but leaves them open. It
// returns their number.
func (p *proxy) swallow() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.holes {
		h.Store(true)
	}
	return len(p.holes)
}

func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
}
