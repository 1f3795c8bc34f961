package redistest

import (
	"bufio"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A Proxy stands between clients and a server, and cuts connections after the
// server has carried a command out and before the client gets its reply.
type Proxy struct {
	// Addr is where clients connect.
	Addr string

	server string
	// cut is asked about each reply to a script.
	cut func() bool

	mu    sync.Mutex
	conns []net.Conn
	all   sync.WaitGroup
}

// NewProxy returns a Proxy for the server at an address, which ends with the test.
// Before the reply to a script is passed on cut is called, one call at a time; if it
// returns true the reply is dropped and the connection closed.
func NewProxy(tb testing.TB, server string, cut func() bool) *Proxy {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{Addr: l.Addr().String(), server: server}
	var one sync.Mutex
	p.cut = func() bool {
		one.Lock()
		defer one.Unlock()
		return cut()
	}
	p.all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.serve(c)
		}
	})
	tb.Cleanup(func() {
		l.Close()
		p.mu.Lock()
		for _, c := range p.conns {
			c.Close()
		}
		p.mu.Unlock()
		p.all.Wait()
	})
	return p
}

func (p *Proxy) serve(client net.Conn) {
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		client.Close()
		return
	}
	p.mu.Lock()
	p.conns = append(p.conns, client, server)
	p.mu.Unlock()
	scripts := make(chan bool, 1<<16) // for each command under way
	p.all.Go(func() {
		defer client.Close()
		defer server.Close()
		r := &respReader{r: bufio.NewReaderSize(client, 64<<10)}
		for {
			text, name, err := r.next()
			if err != nil {
				return
			}
			scripts <- strings.HasPrefix(strings.ToLower(name), "eval")
			if _, err := server.Write(text); err != nil {
				return
			}
		}
	})
	p.all.Go(func() {
		defer client.Close()
		defer server.Close()
		r := &respReader{r: bufio.NewReaderSize(server, 64<<10)}
		for {
			text, _, err := r.next()
			if err != nil {
				return
			}
			if text[0] != '>' && <-scripts && p.cut() {
				return
			}
			if _, err := client.Write(text); err != nil {
				return
			}
		}
	})
}

// A respReader takes a stream of RESP values apart.
type respReader struct {
	r    *bufio.Reader
	text []byte
	name string // the first string in a value
}

func (r *respReader) next() (text []byte, name string, err error) {
	r.text, r.name = nil, ""
	err = r.value()
	return r.text, r.name, err
}

func (r *respReader) value() error {
	line, err := r.r.ReadBytes('\n')
	if err != nil {
		return err
	}
	r.text = append(r.text, line...)
	n, _ := strconv.Atoi(strings.TrimSpace(string(line[1:])))
	switch line[0] {
	case '$', '=', '!':
		if n < 0 {
			return nil
		}
		b := make([]byte, n+2)
		if _, err := io.ReadFull(r.r, b); err != nil {
			return err
		}
		r.text = append(r.text, b...)
		if r.name == "" {
			r.name = string(b[:n])
		}
		return nil
	case '%', '|':
		n *= 2
	case '*', '~', '>':
	default:
		return nil
	}
	for range n {
		if err := r.value(); err != nil {
			return err
		}
	}
	return nil
}
