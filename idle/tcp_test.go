package idle_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/idle"
	"github.com/tickless/tickless/timertest"
)

// These tests use real sockets and a virtual clock, so that a slow machine makes no
// connection idle.

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// tcpPair returns the two ends of a connection.
func tcpPair(t testing.TB) (server, client *net.TCPConn) {
	t.Helper()
	l := listen(t)
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	s, err := l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { c.Close(); s.Close() })
	return s.(*net.TCPConn), c.(*net.TCPConn)
}

// spy records the types of the sources that its ReadFrom gets. Package net uses sendfile
// or splice only for some types.
type spy struct {
	*net.TCPConn
	before func() // called at each ReadFrom, unless nil

	mu      sync.Mutex
	sources []string
	pieces  []int64
}

func (s *spy) ReadFrom(r io.Reader) (int64, error) {
	lr := r.(*io.LimitedReader)
	s.mu.Lock()
	s.sources = append(s.sources, fmt.Sprintf("%T", lr.R))
	s.pieces = append(s.pieces, lr.N)
	s.mu.Unlock()
	if s.before != nil {
		s.before()
	}
	return s.TCPConn.ReadFrom(r)
}

func (s *spy) seen() (sources []string, pieces []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Compact(slices.Clone(s.sources)), slices.Clone(s.pieces)
}

func wrap(t testing.TB, cs *idle.Conns, c net.Conn) *idle.Conn {
	t.Helper()
	w, err := cs.Wrap(c)
	require.NoError(t, err)
	return w
}

// active waits until the last activity of each connection is at the present time.
func active(clk *timertest.Clock, cs ...*idle.Conn) {
	for _, c := range cs {
		for !c.Since().Equal(clk.Now()) {
			time.Sleep(100 * time.Microsecond)
		}
	}
}

func randomFile(t testing.TB, size int) (f *os.File, data []byte) {
	t.Helper()
	data = make([]byte, size)
	rand.Read(data)
	name := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.WriteFile(name, data, 0o600))
	f, err := os.Open(name)
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return f, data
}

func TestConn_HalfClosed(t *testing.T) {
	clk := timertest.NewClock(epoch)
	cs := idle.NewConns(30*time.Second, idle.WithClock(clk), idle.WithSlackShare(0))
	server, client := tcpPair(t)
	c := wrap(t, cs, server)

	require.NoError(t, client.CloseWrite())
	_, err := c.Read(make([]byte, 1))
	require.Equal(t, io.EOF, err, "only the peer has closed its side")
	for range 5 { // the other direction continues
		clk.Advance(20 * time.Second)
		_, err := c.Write([]byte("x"))
		require.NoError(t, err)
		_, err = client.Read(make([]byte, 1))
		require.NoError(t, err)
	}
	require.NoError(t, c.CloseRead())
	require.NoError(t, c.CloseWrite())
	_, err = client.Read(make([]byte, 1))
	require.Equal(t, io.EOF, err)
	require.Zero(t, cs.Stats().Evicted, "closed in both directions, but still open")
	clk.Advance(30 * time.Second)
	require.EqualValues(t, 1, cs.Stats().Evicted)
	_, err = c.Read(make([]byte, 1))
	idleError(t, "read", err)
	idleError(t, "close", c.CloseWrite())
	idleError(t, "close", c.CloseRead())
	idleError(t, "close", c.Close())
	idleError(t, "set", c.SetDeadline(time.Time{}))
	end(t, cs)
}

func TestConn_PendingReadAndWriteGetErrIdle(t *testing.T) {
	clk := timertest.NewClock(epoch)
	cs := idle.NewConns(30*time.Second, idle.WithClock(clk), idle.WithSlackShare(0))
	server, _ := tcpPair(t)
	c := wrap(t, cs, server)
	errs := make(chan error)
	go func() {
		_, err := c.Read(make([]byte, 1))
		errs <- err
	}()
	go func() {
		_, err := io.Copy(c, zeros{}) // until the peer's buffers are full
		errs <- err
	}()
	for {
		// The copy may wait in the kernel when its connection is evicted, or may begin
		// later. In both cases it must return ErrIdle.
		if clk.Advance(40 * time.Second); cs.Stats().Evicted == 1 {
			break
		}
	}
	for range 2 {
		err := <-errs
		require.ErrorIs(t, err, idle.ErrIdle)
		require.ErrorIs(t, err, net.ErrClosed)
	}
	end(t, cs)
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestConnReadFrom_AFileGoesTheFastWay(t *testing.T) {
	f, data := randomFile(t, 9<<20+17)
	for _, c := range []struct {
		name string
		copy func(c *idle.Conn, f *os.File) (int64, error)
		want int
	}{
		{"Copy", func(c *idle.Conn, f *os.File) (int64, error) { return io.Copy(c, f) }, len(data)},
		{"CopyN", func(c *idle.Conn, f *os.File) (int64, error) { return io.CopyN(c, f, 5<<20) }, 5 << 20},
		{"ReadFrom", func(c *idle.Conn, f *os.File) (int64, error) { return c.ReadFrom(f) }, len(data)},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := f.Seek(0, io.SeekStart)
			require.NoError(t, err)
			clk := timertest.NewClock(epoch)
			cs := idle.NewConns(30*time.Second, idle.WithClock(clk), idle.WithSlackShare(0))
			server, client := tcpPair(t)
			s := &spy{TCPConn: server}
			// Each piece takes 20 seconds, so that the copy takes many timeouts.
			s.before = func() { clk.Advance(20 * time.Second) }
			conn := wrap(t, cs, s)
			got := make(chan []byte)
			go func() {
				b, _ := io.ReadAll(client)
				got <- b
			}()
			n, err := c.copy(conn, f)
			require.NoError(t, err)
			require.EqualValues(t, c.want, n)
			require.NoError(t, conn.Close())
			require.True(t, bytes.Equal(data[:c.want], <-got))
			sources, pieces := s.seen()
			require.Len(t, sources, 1)
			require.Contains(t, []string{"*os.File", "os.fileWithoutWriteTo"}, sources[0])
			for _, p := range pieces {
				require.LessOrEqual(t, p, int64(64<<10), "slow pieces stay small")
			}
			require.Greater(t, clk.Now().Sub(epoch), 25*time.Minute)
			end(t, cs)
		})
	}
}

func TestConnReadFrom_InPieces(t *testing.T) {
	f, data := randomFile(t, 32<<20)
	clk := timertest.NewClock(epoch)
	cs := idle.NewConns(30*time.Second, idle.WithClock(clk), idle.WithSlackShare(0))
	server, client := tcpPair(t)
	s := &spy{TCPConn: server}
	conn := wrap(t, cs, s)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		io.Copy(conn, f)
		conn.Close()
	}()
	got, err := io.ReadAll(client)
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, got))
	_, pieces := s.seen()
	require.EqualValues(t, 64<<10, slices.Max(pieces))
	<-closed
	end(t, cs)
}

func TestConnCopy_BetweenSocketsGoesTheFastWay(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("package net has no splice here")
	}
	// The test writes to in and reads from out: in -> a -> copy -> b -> out.
	for name, copy := range map[string]func(cs *idle.Conns, a, b *net.TCPConn, s *spy) (from, to *idle.Conn, copy func() (int64, error)){
		"Conn to Conn": func(cs *idle.Conns, a, b *net.TCPConn, s *spy) (*idle.Conn, *idle.Conn, func() (int64, error)) {
			from, to := wrap(t, cs, a), wrap(t, cs, s)
			return from, to, func() (int64, error) { return io.Copy(to, from) }
		},
		"TCPConn to Conn": func(cs *idle.Conns, a, b *net.TCPConn, s *spy) (*idle.Conn, *idle.Conn, func() (int64, error)) {
			to := wrap(t, cs, s)
			return nil, to, func() (int64, error) { return io.Copy(to, a) }
		},
		"Conn to TCPConn": func(cs *idle.Conns, a, b *net.TCPConn, s *spy) (*idle.Conn, *idle.Conn, func() (int64, error)) {
			from := wrap(t, cs, a)
			return from, nil, func() (int64, error) { return io.Copy(s, from) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			clk := timertest.NewClock(epoch)
			cs := idle.NewConns(30*time.Second, idle.WithClock(clk), idle.WithSlackShare(0))
			a, in := tcpPair(t)
			b, out := tcpPair(t)
			s := &spy{TCPConn: b}
			from, to, run := copy(cs, a, b, s)
			var conns []*idle.Conn
			for _, c := range []*idle.Conn{from, to} {
				if c != nil {
					conns = append(conns, c)
				}
			}
			type result struct {
				n   int64
				err error
			}
			done := make(chan result)
			go func() {
				n, err := run()
				done <- result{n, err}
			}()
			// One byte every 20 seconds counts as activity of both connections.
			for i := range 10 {
				_, err := in.Write([]byte{byte(i)})
				require.NoError(t, err)
				got := []byte{99}
				_, err = out.Read(got)
				require.NoError(t, err)
				require.Equal(t, byte(i), got[0])
				active(clk, conns...)
				clk.Advance(20 * time.Second)
			}
			require.Zero(t, cs.Stats().Evicted)
			// Then many bytes arrive at once.
			data := make([]byte, 5<<20)
			rand.Read(data)
			go func() {
				in.Write(data)
				in.CloseWrite()
			}()
			got := make([]byte, len(data))
			_, err := io.ReadFull(out, got)
			require.NoError(t, err)
			require.True(t, bytes.Equal(data, got))
			r := <-done
			require.NoError(t, r.err)
			require.EqualValues(t, 10+len(data), r.n)
			sources, _ := s.seen()
			require.Len(t, sources, 1)
			require.Contains(t, []string{"*net.TCPConn", "net.tcpConnWithoutWriteTo"}, sources[0])
			for _, c := range conns {
				c.Close()
			}
			end(t, cs)
		})
	}
}

// If the peer resets the connection, the error of the copy is that of a Read.
func TestConnCopy_FromOneThatIsReset(t *testing.T) {
	cs := idle.NewConns(time.Hour)
	a, in := tcpPair(t)
	b, _ := tcpPair(t)
	from, to := wrap(t, cs, a), wrap(t, cs, b)
	require.NoError(t, in.SetLinger(0))
	require.NoError(t, in.Close())
	_, err := io.Copy(to, from)
	var op *net.OpError
	require.ErrorAs(t, err, &op)
	require.Equal(t, "read", op.Op)
	require.Equal(t, "tcp", op.Net)
	require.Equal(t, a.LocalAddr(), op.Source)
	require.Equal(t, a.RemoteAddr(), op.Addr)
	from.Close()
	to.Close()
	end(t, cs)
}

func TestConnCopy_SilentOnceEvicted(t *testing.T) {
	clk := timertest.NewClock(epoch)
	cs := idle.NewConns(30*time.Second, idle.WithClock(clk), idle.WithSlackShare(0))
	a, in := tcpPair(t)
	b, _ := tcpPair(t)
	from, to := wrap(t, cs, a), wrap(t, cs, b)
	done := make(chan error)
	go func() {
		_, err := io.Copy(to, from)
		done <- err
	}()
	in.Write([]byte("x"))
	active(clk, from, to)
	clk.Advance(time.Minute)
	err := <-done
	require.ErrorIs(t, err, idle.ErrIdle)
	require.EqualValues(t, 2, cs.Stats().Evicted)
	end(t, cs)
}

func TestConnWriteTo_AFile(t *testing.T) {
	clk := timertest.NewClock(epoch)
	cs := idle.NewConns(30*time.Second, idle.WithClock(clk), idle.WithSlackShare(0))
	server, client := tcpPair(t)
	c := wrap(t, cs, server)
	data := make([]byte, 3<<20)
	rand.Read(data)
	go func() {
		client.Write(data[:1])
		active(clk, c)
		clk.Advance(20 * time.Second)
		client.Write(data[1:])
		client.Close()
	}()
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer f.Close()
	n, err := io.Copy(f, c)
	require.NoError(t, err)
	require.EqualValues(t, len(data), n)
	got, err := os.ReadFile(f.Name())
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, got))
	require.NoError(t, c.Close())
	end(t, cs)
}

// A pipe or another reader may deliver only a few bytes a minute. The copy must not wait
// for a full piece.
func TestConnReadFrom_SlowSources(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	pr, pw := io.Pipe()
	lr, lw := io.Pipe()
	for name, s := range map[string]struct {
		r io.Reader
		w io.WriteCloser
	}{"os.Pipe": {r, w}, "io.Pipe": {pr, pw}, "io.LimitReader": {io.LimitReader(lr, 1<<20), lw}} {
		t.Run(name, func(t *testing.T) {
			clk := timertest.NewClock(epoch)
			cs := idle.NewConns(30*time.Second, idle.WithClock(clk), idle.WithSlackShare(0))
			server, client := tcpPair(t)
			c := wrap(t, cs, server)
			done := make(chan error)
			go func() {
				_, err := io.Copy(c, s.r)
				done <- err
			}()
			for range 5 {
				s.w.Write([]byte("x"))
				client.Read(make([]byte, 1))
				active(clk, c)
				clk.Advance(20 * time.Second)
			}
			require.Zero(t, cs.Stats().Evicted)
			s.w.Close()
			require.NoError(t, <-done)
			require.NoError(t, c.Close())
			end(t, cs)
		})
	}
}

// A Write in pieces is still one Write: no other Write comes between its pieces.
func TestConnWrite_LargeWritesDoNotMix(t *testing.T) {
	cs := idle.NewConns(time.Hour)
	near, far := net.Pipe()
	defer far.Close()
	r := &recorder{Conn: near}
	c := wrap(t, cs, r)
	var wg sync.WaitGroup
	for _, b := range []byte("abcd") {
		wg.Go(func() { c.Write(bytes.Repeat([]byte{b}, 300<<10)) })
	}
	wg.Wait()
	require.Len(t, r.writes, 4*5, "four of 64 KiB and the rest")
	require.Len(t, slices.Compact(r.writes), 4, "one after another")
	c.Close()
	end(t, cs)
}

// recorder records the first byte of each Write.
type recorder struct {
	net.Conn
	mu     sync.Mutex
	writes []byte
}

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	r.writes = append(r.writes, b[0])
	r.mu.Unlock()
	time.Sleep(time.Millisecond) // gives other Writes a chance to interfere
	return len(b), nil
}

func TestConnSyscallConn(t *testing.T) {
	clk := timertest.NewClock(epoch)
	cs := idle.NewConns(30*time.Second, idle.WithClock(clk), idle.WithSlackShare(0))
	server, client := tcpPair(t)
	c := wrap(t, cs, server)
	rc, err := c.SyscallConn()
	require.NoError(t, err)
	clk.Advance(time.Second)
	client.Write([]byte("x"))
	require.NoError(t, rc.Read(func(fd uintptr) bool { return true }))
	require.NoError(t, rc.Write(func(fd uintptr) bool { return true }))
	require.Equal(t, epoch, c.Since(), "what only the system sees is not activity")
	clk.Advance(time.Hour)
	require.ErrorIs(t, rc.Read(func(fd uintptr) bool { return true }), net.ErrClosed)
	end(t, cs)
}
