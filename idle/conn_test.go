package idle_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/atomic"

	"github.com/tickless/tickless/idle"
	"github.com/tickless/tickless/timertest"
)

// pipe returns a Conn over one end of a net.Pipe, and the other end.
func pipe(t testing.TB, cs *idle.Conns) (*idle.Conn, net.Conn) {
	t.Helper()
	near, far := net.Pipe()
	c, err := cs.Wrap(near)
	require.NoError(t, err)
	return c, far
}

// end shuts cs down. It requires that the counts agree and that TakeLeftover returns all
// open connections.
func end(t testing.TB, cs *idle.Conns) {
	t.Helper()
	// Shutdown waits for callbacks, which may still change the counts.
	require.NoError(t, cs.Shutdown(context.Background()))
	st := cs.Stats()
	require.Equal(t, st.Wrapped, st.Evicted+st.Closed+uint64(st.Open), "%+v", st)
	require.Len(t, openAfterClose(cs), st.Open)
}

// idleError requires that err is a net.OpError for op that wraps ErrIdle.
func idleError(t testing.TB, op string, err error) {
	t.Helper()
	require.ErrorIs(t, err, idle.ErrIdle)
	require.ErrorIs(t, err, net.ErrClosed)
	var opErr *net.OpError
	require.ErrorAs(t, err, &opErr)
	require.Equal(t, op, opErr.Op)
	require.False(t, opErr.Timeout())
}

func TestConn_ClosedWhenSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		cs := idle.NewConns(30*time.Second, idle.WithSlackShare(0))
		c, far := pipe(t, cs)
		n, err := c.Read(make([]byte, 1))
		require.Equal(t, 30*time.Second, time.Since(start))
		require.Zero(t, n)
		idleError(t, "read", err)
		require.EqualError(t, err, "read pipe pipe->pipe: closed for being idle")
		_, err = c.Write([]byte("x"))
		idleError(t, "write", err)
		_, err = far.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err)
		require.NoError(t, c.Close(), "a pipe can be closed again")
		require.Equal(t, idle.ConnsStats{Wrapped: 1, Evicted: 1}, cs.Stats())
		end(t, cs)
	})
}

func TestConn_ReadsAndWritesAreActivity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		cs := idle.NewConns(30*time.Second, idle.WithSlackShare(0))
		c, far := pipe(t, cs)
		go func() { // a slow echo server
			buf := make([]byte, 10)
			for {
				n, err := far.Read(buf)
				if err != nil {
					return
				}
				time.Sleep(20 * time.Second)
				far.Write(buf[:n])
			}
		}()
		for range 10 {
			_, err := c.Write([]byte("ping"))
			require.NoError(t, err)
			require.Equal(t, time.Now(), c.Since())
			_, err = io.ReadFull(c, make([]byte, 4)) // takes 20 seconds
			require.NoError(t, err)
			require.Equal(t, time.Now(), c.Since())
			time.Sleep(20 * time.Second)
		}
		_, err := c.Read(make([]byte, 1))
		idleError(t, "read", err)
		require.Equal(t, 410*time.Second, time.Since(start))
		far.Close()
		end(t, cs)
	})
}

// A long Write counts as activity while the peer accepts bytes. When the peer accepts no
// more, the connection is closed.
func TestConnWrite_ToASlowPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cs := idle.NewConns(30*time.Second, idle.WithSlackShare(0))
		c, far := pipe(t, cs)
		data := make([]byte, 1<<20)
		for i := range data {
			data[i] = byte(i * 7 >> 3)
		}
		read := make(chan []byte)
		go func() {
			var got []byte
			buf := make([]byte, 32<<10)
			for len(got) < len(data) {
				n, _ := io.ReadFull(far, buf)
				got = append(got, buf[:n]...)
				time.Sleep(14 * time.Second) // 64 KiB in 28 s
			}
			read <- got
		}()
		begin := time.Now()
		n, err := c.Write(data)
		require.NoError(t, err)
		require.Equal(t, len(data), n)
		require.Greater(t, time.Since(begin), 7*time.Minute)
		require.True(t, bytes.Equal(data, <-read))

		go io.ReadFull(far, make([]byte, 3*64<<10)) // and then nothing more
		n, err = c.Write(data)
		idleError(t, "write", err)
		require.Equal(t, 3*64<<10, n)
		far.Close()
		end(t, cs)
	})
}

// messages is a connection that records the lengths of its writes.
type messages struct {
	net.Conn
	network string
	writes  []int
}

func (r *messages) LocalAddr() net.Addr {
	if r.network == "" {
		return nil
	}
	return &net.UnixAddr{Net: r.network}
}

func (r *messages) Write(b []byte) (int, error) {
	r.writes = append(r.writes, len(b))
	return len(b), nil
}

// A Write of 100,000 bytes is split only on networks without message boundaries.
func TestConnWrite_SplitsOnlyStreams(t *testing.T) {
	cs := idle.NewConns(time.Hour)
	defer cs.Close()
	const piece, size = 64 << 10, 100_000
	for network, want := range map[string][]int{
		"tcp":        {piece, size - piece},
		"unix":       {piece, size - piece},
		"pipe":       {piece, size - piece},
		"unixpacket": {size},
		"unixgram":   {size},
		"udp":        {size},
		"":           {size},
	} {
		r := &messages{network: network}
		c := wrap(t, cs, r)
		n, err := c.Write(make([]byte, size))
		require.NoError(t, err)
		require.Equal(t, size, n)
		require.Equal(t, want, r.writes, network)
	}
}

// On the network unixpacket, a Write is sent as one message.
func TestConnWrite_Unixpacket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unixpacket", path)
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	peer, err := net.Dial("unixpacket", path)
	require.NoError(t, err)
	defer peer.Close()
	c, err := idle.NewListener(l, time.Hour).Accept()
	require.NoError(t, err)
	defer c.Close()
	const size = 100_000
	_, err = c.Write(make([]byte, size))
	require.NoError(t, err)
	n, err := peer.Read(make([]byte, 2*size))
	require.NoError(t, err)
	require.Equal(t, size, n)
}

func TestConnClose_EndsTheWatchingAtOnce(t *testing.T) {
	clk := timertest.NewClock(epoch)
	cs := idle.NewConns(30*time.Second, idle.WithClock(clk), idle.WithSlackShare(0), idle.WithOnIdle(func(*idle.Conn, time.Time) bool {
		t.Error("the callback was called for a closed connection")
		return true
	}))
	c, far := pipe(t, cs)
	require.NoError(t, c.Close())
	require.Equal(t, idle.ConnsStats{Wrapped: 1, Closed: 1}, cs.Stats())
	_, pending := clk.Next()
	for pending { // the wake-up of a bucket that is now empty
		clk.Advance(time.Minute)
		_, pending = clk.Next()
	}
	_, err := c.Read(make([]byte, 1))
	require.Equal(t, io.ErrClosedPipe, err, "closed by its user, not for being idle")
	require.NoError(t, c.Close())
	require.Equal(t, idle.ConnsStats{Wrapped: 1, Closed: 1}, cs.Stats())
	far.Close()
	end(t, cs)
}

func TestConn_EvictionRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var asked []time.Duration
		cs := idle.NewConns(30*time.Second, idle.WithSlackShare(0), idle.WithOnIdle(func(c *idle.Conn, since time.Time) bool {
			require.Equal(t, since, c.Since())
			asked = append(asked, time.Since(start))
			switch len(asked) {
			case 1: // the peer answers
				_, err := c.Write([]byte("ping"))
				require.NoError(t, err)
				return false
			case 2: // the peer waits for a while
				time.Sleep(10 * time.Second)
				return false
			}
			return len(asked) == 4
		}))
		c, far := pipe(t, cs)
		go func() {
			io.ReadFull(far, make([]byte, 4))
			time.Sleep(5 * time.Second)
			far.Write([]byte("pong"))
		}()
		_, err := io.ReadFull(c, make([]byte, 4))
		require.NoError(t, err)
		_, err = c.Read(make([]byte, 1))
		idleError(t, "read", err)
		require.Equal(t, []time.Duration{30 * time.Second, 65 * time.Second, 105 * time.Second, 135 * time.Second}, asked)
		require.Equal(t, idle.ConnsStats{Wrapped: 1, Evicted: 1, Refused: 3}, cs.Stats())
		far.Close()
		end(t, cs)
	})
}

// What the callback writes, or reads, does not keep the connection open: the result decides.
func TestConn_EvictedAfterAFarewell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		cs := idle.NewConns(30*time.Second, idle.WithSlackShare(0), idle.WithOnIdle(func(c *idle.Conn, _ time.Time) bool {
			if asked++; asked > 1 {
				t.Error("the result did not decide")
				return c.Close() == nil
			}
			_, err := c.Write([]byte("bye"))
			require.NoError(t, err)
			time.Sleep(time.Minute) // longer than the timeout
			return true
		}))
		c, far := pipe(t, cs)
		got, err := io.ReadAll(far)
		require.NoError(t, err)
		require.Equal(t, "bye", string(got))
		_, err = c.Read(make([]byte, 1))
		idleError(t, "read", err)
		require.Equal(t, idle.ConnsStats{Wrapped: 1, Evicted: 1}, cs.Stats())
		far.Close()
		end(t, cs)
	})
}

// If the callback refuses an eviction after Close of the Conns, TakeLeftover returns the
// connection.
func TestConn_RefusedAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		cs := idle.NewConns(time.Second, idle.WithOnIdle(func(*idle.Conn, time.Time) bool {
			<-answer
			return false
		}))
		c, far := pipe(t, cs)
		time.Sleep(2 * time.Second)
		require.NoError(t, cs.Close())
		close(answer)
		require.NoError(t, cs.Shutdown(t.Context()))
		require.Equal(t, []*idle.Conn{c}, slices.Collect(cs.TakeLeftover()))
		require.Equal(t, idle.ConnsStats{Wrapped: 1, Open: 1, Refused: 1}, cs.Stats())
		require.NoError(t, c.Close())
		far.Close()
	})
}

func TestConn_CallbackMayClose(t *testing.T) {
	for _, refuse := range []bool{false, true} {
		clk := timertest.NewClock(epoch)
		cs := idle.NewConns(time.Second, idle.WithClock(clk), idle.WithSlackShare(0), idle.WithOnIdle(func(c *idle.Conn, _ time.Time) bool {
			require.NoError(t, c.Close())
			return !refuse
		}))
		c, far := pipe(t, cs)
		clk.Advance(time.Second)
		for _, pending := clk.Next(); pending; _, pending = clk.Next() { // the wake-up of a bucket that is now empty
			clk.Advance(time.Minute)
		}
		_, err := c.Read(make([]byte, 1))
		require.Equal(t, io.ErrClosedPipe, err)
		st := cs.Stats()
		require.EqualValues(t, 1, st.Closed)
		require.Zero(t, st.Evicted)
		far.Close()
		end(t, cs)
	}
}

// If a connection is closed between the decision to evict it and its callback, the
// callback is not called.
func TestConnClose_BeforeItsCallbackBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		asked := map[*idle.Conn]bool{}
		cs := idle.NewConns(30*time.Second, idle.WithSlackShare(0), idle.WithOnIdle(func(c *idle.Conn, _ time.Time) bool {
			mu.Lock()
			asked[c] = true
			mu.Unlock()
			time.Sleep(time.Hour)
			return true
		}))
		var conns []*idle.Conn
		// The pool runs GOMAXPROCS callbacks at once, and needs a millisecond to start
		// more. So one callback has to wait.
		for range runtime.GOMAXPROCS(0) + 1 {
			c, far := pipe(t, cs)
			defer far.Close()
			conns = append(conns, c)
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		var closed *idle.Conn
		for _, c := range conns {
			mu.Lock()
			begun := asked[c]
			mu.Unlock()
			if !begun {
				require.Nil(t, closed)
				closed = c
				require.NoError(t, c.Close())
			}
		}
		require.NotNil(t, closed)
		time.Sleep(2 * time.Hour)
		require.False(t, asked[closed])
		require.Equal(t, idle.ConnsStats{Wrapped: uint64(len(conns)), Evicted: uint64(len(conns) - 1), Closed: 1}, cs.Stats())
		end(t, cs)
	})
}

func TestConn_CallbackThatPanicsHasNotRefused(t *testing.T) {
	clk := timertest.NewClock(epoch)
	var got any
	cs := idle.NewConns(time.Second, idle.WithClock(clk), idle.WithSlackShare(0),
		idle.WithOnIdle(func(*idle.Conn, time.Time) bool { panic("oops") }),
		idle.WithPanicHandler(func(v any, _ []byte) { got = v }))
	c, far := pipe(t, cs)
	clk.Advance(time.Second)
	require.Equal(t, "oops", got)
	_, err := c.Read(make([]byte, 1))
	idleError(t, "read", err)
	far.Close()
	end(t, cs)
}

func TestConn_UsersDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		cs := idle.NewConns(30*time.Second, idle.WithSlackShare(0))
		c, far := pipe(t, cs)
		for range 2 {
			// A deadline that passes is not activity, and does not close the connection.
			require.NoError(t, c.SetReadDeadline(time.Now().Add(10*time.Second)))
			_, err := c.Read(make([]byte, 1))
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			require.NotErrorIs(t, err, idle.ErrIdle)
		}
		require.NoError(t, c.SetWriteDeadline(time.Now().Add(time.Second)))
		n, err := c.Write(make([]byte, 200<<10))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Zero(t, n)
		require.Equal(t, start, c.Since())
		// A deadline in the past, set by another goroutine, interrupts a Read.
		require.NoError(t, c.SetDeadline(time.Time{}))
		time.AfterFunc(time.Second, func() { c.SetDeadline(time.Unix(1, 0)) })
		_, err = c.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, 22*time.Second, time.Since(start))
		// If the deadline is after the timeout, the connection is closed first.
		require.NoError(t, c.SetDeadline(time.Now().Add(time.Hour)))
		_, err = c.Read(make([]byte, 1))
		idleError(t, "read", err)
		require.Equal(t, 30*time.Second, time.Since(start))
		far.Close()
		end(t, cs)
	})
}

func TestConnSetTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		refused := false
		cs := idle.NewConns(30*time.Second, idle.WithSlackShare(0), idle.WithOnIdle(func(*idle.Conn, time.Time) bool {
			refused = !refused
			return !refused
		}))
		c, far := pipe(t, cs)
		time.Sleep(29 * time.Second)
		c.SetTimeout(time.Hour)
		_, err := c.Read(make([]byte, 1))
		idleError(t, "read", err)
		require.Equal(t, 2*time.Hour, time.Since(start), "the new timeout also counts after a refused eviction")
		far.Close()
		end(t, cs)
	})
}

func TestConn_WhatIsNotSupportedUnderneath(t *testing.T) {
	cs := idle.NewConns(time.Hour)
	c, far := pipe(t, cs)
	require.ErrorIs(t, c.CloseRead(), errors.ErrUnsupported)
	require.ErrorIs(t, c.CloseWrite(), errors.ErrUnsupported)
	_, err := c.SyscallConn()
	require.ErrorIs(t, err, errors.ErrUnsupported)
	// A copy works even without sendfile and splice.
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		io.Copy(c, bytes.NewReader([]byte("hello")))
		c.Close()
	}()
	got, err := io.ReadAll(far)
	require.NoError(t, err)
	require.Equal(t, "hello", string(got))
	<-closed
	end(t, cs)
}

// A Conn can be used and closed in a bubble, even if its Conns was made outside.
func TestConns_MadeOutsideABubbleAndUsedInside(t *testing.T) {
	cs := idle.NewConns(time.Hour)
	c, peer := net.Pipe()
	defer peer.Close()
	w, err := cs.Wrap(c)
	require.NoError(t, err)
	go peer.Write([]byte("x"))
	synctest.Test(t, func(t *testing.T) {
		n, err := w.Read(make([]byte, 1))
		require.NoError(t, err)
		require.Equal(t, 1, n)
		w.SetTimeout(time.Second)
		require.PanicsWithValue(t, elsewhere, func() { cs.Wrap(c) })
		require.PanicsWithValue(t, elsewhere, func() { cs.Close() })
		require.Equal(t, idle.ConnsStats{Wrapped: 1, Open: 1}, cs.Stats())
		require.NoError(t, w.Close())
	})
	require.Equal(t, idle.ConnsStats{Wrapped: 1, Closed: 1}, cs.Stats())
	require.NoError(t, cs.Shutdown(context.Background()))
}

// countingConn records the counts of cs when it is closed.
type countingConn struct {
	net.Conn
	cs *idle.Conns
	n  idle.ConnsStats
}

func (c *countingConn) Close() error {
	c.n = c.cs.Stats()
	return c.Conn.Close()
}

// A connection is counted as closed before its peer or its reader can notice that it is
// closed.
func TestConns_CountsBeforeItCloses(t *testing.T) {
	clk := timertest.NewClock(epoch)
	cs := idle.NewConns(time.Second, idle.WithClock(clk))
	defer end(t, cs)
	wrap := func() (*idle.Conn, *countingConn) {
		ours, _ := net.Pipe()
		inner := &countingConn{Conn: ours, cs: cs}
		c, err := cs.Wrap(inner)
		require.NoError(t, err)
		return c, inner
	}
	_, silent := wrap()
	clk.Advance(2 * time.Second)
	require.Equal(t, idle.ConnsStats{Wrapped: 1, Evicted: 1}, silent.n)
	c, inner := wrap()
	require.NoError(t, c.Close())
	require.Equal(t, idle.ConnsStats{Wrapped: 2, Evicted: 1, Closed: 1}, inner.n)
}

func TestConns_AfterClose(t *testing.T) {
	clk := timertest.NewClock(epoch)
	cs := idle.NewConns(time.Second, idle.WithClock(clk), idle.WithSlackShare(0))
	c, far := pipe(t, cs)
	require.Equal(t, []*idle.Conn{c}, openAfterClose(cs))
	near2, far2 := net.Pipe()
	_, err := cs.Wrap(near2)
	require.ErrorIs(t, err, idle.ErrClosed)
	clk.Advance(time.Hour)
	go far.Write([]byte("x")) // the connection works, but is no longer watched
	_, err = c.Read(make([]byte, 1))
	require.NoError(t, err)
	c.SetTimeout(time.Second)
	require.NoError(t, c.Close())
	require.Equal(t, idle.ConnsStats{Wrapped: 1, Closed: 1}, cs.Stats())
	for _, c := range []net.Conn{far, near2, far2} {
		c.Close()
	}
	end(t, cs)
}

// Reads, writes, closes, timeout changes and evictions race with each other. Each
// connection is either evicted or closed, once.
func TestStress_ConnsEndOnce(t *testing.T) {
	for end := time.Now().Add(stressFor() / 2); time.Now().Before(end); {
		var asked atomic.Uint32
		cs := idle.NewConns(200*time.Microsecond, idle.WithTick(20*time.Microsecond), idle.WithOnIdle(func(c *idle.Conn, _ time.Time) bool {
			return asked.Inc()%3 != 0
		}))
		var wg sync.WaitGroup
		var closed atomic.Int64
		const n = 200
		for i := range n {
			near, far := net.Pipe()
			c, err := cs.Wrap(&closeCounter{Conn: near, closed: &closed})
			require.NoError(t, err)
			wg.Go(func() { io.Copy(far, far); far.Close() })
			wg.Go(func() { io.Copy(io.Discard, c) })
			wg.Go(func() {
				for k := range 20 {
					if _, err := c.Write([]byte("x")); err != nil {
						break
					}
					if k == 10 {
						c.SetTimeout(time.Duration(100+i) * time.Microsecond)
					}
				}
				if i%3 > 0 {
					c.Close()
				}
			})
		}
		wg.Wait() // each reader ends with its connection
		require.NoError(t, cs.Shutdown(context.Background()))
		st := cs.Stats()
		require.EqualValues(t, n, st.Wrapped)
		require.EqualValues(t, n, st.Evicted+st.Closed)
		require.Zero(t, st.Open)
		require.GreaterOrEqual(t, closed.Load(), int64(n))
		require.Empty(t, openAfterClose(cs))
	}
}

type closeCounter struct {
	net.Conn
	closed *atomic.Int64
}

func (c *closeCounter) Close() error {
	c.closed.Inc()
	return c.Conn.Close()
}

// layered is a connection over another one, as a *tls.Conn is. It has no address.
type layered struct {
	net.Conn
	asked atomic.Int64
}

func (c *layered) NetConn() net.Conn {
	c.asked.Inc()
	return c.Conn
}

func (c *layered) LocalAddr() net.Addr { return nil }

// Only Wrap calls a user's NetConn, because a check holds a lock: a panic there would lose
// the connections of the same moment, and a NetConn that waits would stop all checks.
func TestConns_AsksWhatIsUnderAConnInWrap(t *testing.T) {
	cs := idle.NewConns(10 * time.Millisecond)
	defer end(t, cs)
	near, far := net.Pipe()
	defer far.Close()
	inner := &layered{Conn: near}
	c, err := cs.Wrap(inner)
	require.NoError(t, err)
	require.EqualValues(t, 1, inner.asked.Load())
	_, err = c.Read(make([]byte, 1))
	idleError(t, "read", err)
	require.EqualError(t, err, "read pipe: closed for being idle")
	require.EqualValues(t, 1, inner.asked.Load())
}
