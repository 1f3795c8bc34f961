package idle_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/idle"
	"github.com/tickless/tickless/timertest"
)

// accept returns both ends of a connection that l has accepted.
func accept(t testing.TB, l net.Listener) (*idle.Conn, net.Conn) {
	t.Helper()
	far, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { far.Close() })
	c, err := l.Accept()
	require.NoError(t, err)
	return c.(*idle.Conn), far
}

func TestListener_ClosesWhatIsSilent(t *testing.T) {
	clk := timertest.NewClock(epoch)
	l := idle.NewListener(listen(t), 30*time.Second, idle.WithClock(clk), idle.WithSlackShare(0))
	require.Equal(t, "tcp", l.Addr().Network())
	silent, silentFar := accept(t, l)
	lively, livelyFar := accept(t, l)
	for range 3 {
		clk.Advance(20 * time.Second)
		livelyFar.Write([]byte("x"))
		_, err := lively.Read(make([]byte, 1))
		require.NoError(t, err)
	}
	_, err := silent.Read(make([]byte, 1))
	idleError(t, "read", err)
	_, err = silentFar.Read(make([]byte, 1))
	require.Equal(t, io.EOF, err)
	require.Equal(t, idle.ConnsStats{Wrapped: 2, Evicted: 1, Open: 1}, l.Stats())
	require.NoError(t, l.Close())
	require.NoError(t, lively.Close())
}

// A server that shuts down closes its listener first. Its connections stay watched until
// they end.
func TestListenerClose_ConnectionsGoOn(t *testing.T) {
	clk := timertest.NewClock(epoch)
	l := idle.NewListener(listen(t), 30*time.Second, idle.WithClock(clk), idle.WithSlackShare(0))
	c, far := accept(t, l)
	require.NoError(t, l.Close())
	_, err := l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	require.ErrorIs(t, l.Close(), net.ErrClosed)
	clk.Advance(20 * time.Second)
	far.Write([]byte("x"))
	_, err = c.Read(make([]byte, 1))
	require.NoError(t, err)
	clk.Advance(20 * time.Second)
	require.Equal(t, 1, l.Stats().Open)
	clk.Advance(10 * time.Second)
	_, err = c.Read(make([]byte, 1))
	idleError(t, "read", err)
	require.Equal(t, idle.ConnsStats{Wrapped: 1, Evicted: 1}, l.Stats())
	require.NoError(t, l.Conns().Shutdown(t.Context()))
}

func TestListenerAccept_ConnsClosedMeanwhile(t *testing.T) {
	accepting := &scripted{Listener: listen(t)}
	l := idle.NewListener(accepting, time.Hour)
	defer l.Close()
	near, far := net.Pipe()
	accepting.accept = func() (net.Conn, error) {
		l.Conns().Close() // just after a connection has arrived
		return near, nil
	}
	_, err := l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = far.Read(make([]byte, 1))
	require.Equal(t, io.EOF, err, "the connection must be closed")
}

type scripted struct {
	net.Listener
	accept func() (net.Conn, error)
}

func (s *scripted) Accept() (net.Conn, error) { return s.accept() }

type temporary struct{ error }

func (temporary) Timeout() bool   { return false }
func (temporary) Temporary() bool { return true }

func TestListenerAccept_ErrorsPass(t *testing.T) {
	inner := &scripted{Listener: listen(t)}
	l := idle.NewListener(inner, time.Hour)
	defer l.Close()
	want := temporary{errors.New("too many open files")}
	inner.accept = func() (net.Conn, error) { return nil, want }
	for range 3 {
		_, err := l.Accept()
		require.Equal(t, want, err, "the error must be unchanged, because servers call its methods")
	}
	inner.accept = inner.Listener.Accept
	c, _ := accept(t, l)
	c.Close()
	st := l.Stats()
	require.EqualValues(t, 1, st.Wrapped)
}

func TestConns_OfSeveralListeners(t *testing.T) {
	clk := timertest.NewClock(epoch)
	cs := idle.NewConns(time.Minute, idle.WithClock(clk), idle.WithSlackShare(0))
	a, b := cs.Listener(listen(t)), cs.Listener(listen(t))
	accept(t, a)
	require.NoError(t, a.Close())
	c, _ := accept(t, b)
	require.EqualValues(t, 2, b.Stats().Wrapped)
	require.Equal(t, 2, b.Stats().Open)
	clk.Advance(59 * time.Second)
	c.SetTimeout(2 * time.Minute)
	clk.Advance(time.Second)
	require.EqualValues(t, 1, cs.Stats().Evicted)
	require.NoError(t, b.Close())
	require.Equal(t, []*idle.Conn{c}, openAfterClose(cs))
	require.NoError(t, c.Close())
	end(t, cs)
}

// certificate returns the TLS configurations of a server and its client.
func certificate(t testing.TB) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "localhost"},
		DNSNames:     []string{"localhost"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		IsCA:         true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
		&tls.Config{RootCAs: roots, ServerName: "localhost"}
}

func TestListener_UnderTLS(t *testing.T) {
	serverConfig, clientConfig := certificate(t)
	for name, serve := range map[string]func(l *idle.Listener) (net.Conn, error){
		"tls.NewListener": func(l *idle.Listener) (net.Conn, error) { return tls.NewListener(l, serverConfig).Accept() },
		"tls.Server": func(l *idle.Listener) (net.Conn, error) {
			c, err := l.Accept()
			return tls.Server(c, serverConfig), err
		},
	} {
		t.Run(name, func(t *testing.T) {
			clk := timertest.NewClock(epoch)
			l := idle.NewListener(listen(t), 30*time.Second, idle.WithClock(clk), idle.WithSlackShare(0))
			defer l.Close()
			dialed := make(chan net.Conn)
			go func() {
				c, _ := tls.Dial("tcp", l.Addr().String(), clientConfig)
				dialed <- c
			}()
			s, err := serve(l)
			require.NoError(t, err)
			require.NoError(t, s.(*tls.Conn).Handshake())
			require.IsType(t, &idle.Conn{}, s.(*tls.Conn).NetConn())
			c := <-dialed
			defer c.Close()
			for range 3 {
				clk.Advance(20 * time.Second)
				c.Write([]byte("ping"))
				_, err := io.ReadFull(s, make([]byte, 4))
				require.NoError(t, err)
			}
			errs := make(chan error)
			go func() {
				_, err := s.Read(make([]byte, 1))
				errs <- err
			}()
			clk.Advance(30 * time.Second)
			require.ErrorIs(t, <-errs, idle.ErrIdle)
			_, err = c.Read(make([]byte, 1))
			require.Error(t, err)
			require.EqualValues(t, 1, l.Stats().Evicted)
			s.Close()
		})
	}
}

// A Listener over a TLS listener watches TLS connections. Reads and writes of plain text
// count as activity.
func TestListener_OverTLS(t *testing.T) {
	serverConfig, clientConfig := certificate(t)
	clk := timertest.NewClock(epoch)
	l := idle.NewListener(tls.NewListener(listen(t), serverConfig), 30*time.Second, idle.WithClock(clk), idle.WithSlackShare(0))
	defer l.Close()
	done := make(chan string)
	go func() {
		c, err := tls.Dial("tcp", l.Addr().String(), clientConfig)
		if err != nil {
			done <- err.Error()
			return
		}
		c.Write([]byte("hello"))
		c.CloseWrite()
		b, _ := io.ReadAll(c)
		c.Close()
		done <- string(b)
	}()
	c, err := l.Accept()
	require.NoError(t, err)
	_, err = io.Copy(c, c) // echo
	require.NoError(t, err)
	require.NoError(t, c.(*idle.Conn).CloseWrite())
	require.Equal(t, "hello", <-done)
	clk.Advance(30 * time.Second)
	_, err = c.Read(make([]byte, 1))
	require.Error(t, err)
	require.EqualValues(t, 1, l.Stats().Evicted)
}

// serve runs an HTTP server over the listener until the test ends.
func serve(t testing.TB, l net.Listener, h http.Handler) *http.Server {
	srv := &http.Server{Handler: h}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	t.Cleanup(func() {
		require.NoError(t, srv.Shutdown(context.Background()))
		require.Equal(t, http.ErrServerClosed, <-served)
	})
	return srv
}

func TestListener_HTTPKeepAlive(t *testing.T) {
	clk := timertest.NewClock(epoch)
	l := idle.NewListener(listen(t), 30*time.Second, idle.WithClock(clk), idle.WithSlackShare(0))
	serve(t, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") }))

	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	r := bufio.NewReader(c)
	for range 3 { // on one connection
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		resp, err := http.ReadResponse(r, nil)
		require.NoError(t, err)
		b, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, "hello", string(b))
		clk.Advance(29 * time.Second) // since the server has last read or written
	}
	require.EqualValues(t, 1, l.Stats().Wrapped)
	require.Zero(t, l.Stats().Evicted)
	for l.Stats().Evicted == 0 { // the server may be late to notice that its write is done
		clk.Advance(time.Second)
		runtime.Gosched()
	}
	_, err = r.ReadByte()
	require.Equal(t, io.EOF, err)
}

func TestListener_HTTPStreaming(t *testing.T) {
	clk := timertest.NewClock(epoch)
	l := idle.NewListener(listen(t), 30*time.Second, idle.WithClock(clk), idle.WithSlackShare(0))
	failed := make(chan error, 1)
	serve(t, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range 10 { // an active stream for many timeouts
			clk.Advance(20 * time.Second)
			io.WriteString(w, "event\n")
			if err := http.NewResponseController(w).Flush(); err != nil {
				failed <- err
				return
			}
		}
		clk.Advance(30 * time.Second) // then silence
		_, err := io.WriteString(w, "too late\n")
		if err == nil {
			err = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done() // the eviction ends the request's context
		failed <- err
	}))
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + l.Addr().String())
	require.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.Error(t, err)
	require.Equal(t, strings.Repeat("event\n", 10), string(b))
	require.ErrorIs(t, <-failed, idle.ErrIdle)
	require.EqualValues(t, 1, l.Stats().Evicted)
}

// An HTTP server behind a Listener sends a file with sendfile.
func TestListener_HTTPSendfile(t *testing.T) {
	f, data := randomFile(t, 1<<20)
	spies := make(chan *spy, 1)
	inner := &scripted{Listener: listen(t)}
	inner.accept = func() (net.Conn, error) {
		c, err := inner.Listener.Accept()
		if err != nil {
			return nil, err
		}
		s := &spy{TCPConn: c.(*net.TCPConn)}
		spies <- s
		return s, nil
	}
	l := idle.NewListener(inner, time.Hour)
	serve(t, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, f.Name()) }))
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + l.Addr().String())
	require.NoError(t, err)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, data, got)
	sources, pieces := (<-spies).seen()
	require.Len(t, sources, 1)
	require.Contains(t, []string{"*os.File", "os.fileWithoutWriteTo"}, sources[0])
	var sum int64
	for _, p := range pieces {
		sum += p
	}
	require.LessOrEqual(t, int64(len(data)-512), sum, "all bytes except those that were read to detect the content type")
}
