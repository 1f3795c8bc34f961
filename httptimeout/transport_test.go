package httptimeout_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/deadline"
	"github.com/tickless/tickless/httptimeout"
)

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type idleCounter struct {
	http.RoundTripper
	closed int
}

func (c *idleCounter) CloseIdleConnections() { c.closed++ }

func TestTransport_PassesOnCloseIdleConnections(t *testing.T) {
	base := &idleCounter{}
	client := &http.Client{Transport: httptimeout.Transport(time.Minute, base)}
	client.CloseIdleConnections()
	require.Equal(t, 1, base.closed)
	client.Transport = httptimeout.Transport(time.Minute, &stub{}) // stub has no CloseIdleConnections
	client.CloseIdleConnections()
}

func upgradeRequest(ctx context.Context, url string) *http.Request {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		panic(err)
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")
	return req
}

// The server echoes what it reads until the client has closed its half of the connection,
// and then says goodbye.
func TestTransport_UpgradedConnection(t *testing.T) {
	serverErr := make(chan error, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			serverErr <- err
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, err = io.Copy(conn, rw)
		io.WriteString(conn, "bye\n")
		serverErr <- err
	}))
	defer srv.Close()
	var ctx context.Context
	direct := &http.Transport{}
	base := roundTripFunc(func(r *http.Request) (*http.Response, error) {
		ctx = r.Context()
		return direct.RoundTrip(r)
	})
	client := &http.Client{Transport: httptimeout.Transport(time.Minute, base)}
	resp, err := client.Do(upgradeRequest(t.Context(), srv.URL))
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	conn, ok := resp.Body.(interface {
		io.ReadWriteCloser
		CloseWrite() error
	})
	require.True(t, ok, "%T", resp.Body)
	_, err = io.WriteString(conn, "hello\n")
	require.NoError(t, err)
	in := bufio.NewReader(conn)
	line, err := in.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "hello\n", line)
	require.NoError(t, conn.CloseWrite())
	rest, err := io.ReadAll(in)
	require.NoError(t, err)
	require.Equal(t, "bye\n", string(rest))
	require.NoError(t, <-serverErr)
	require.NoError(t, ctx.Err(), "the body has not been closed")
	require.NoError(t, conn.Close())
	require.ErrorIs(t, ctx.Err(), context.Canceled)
}

// rwc is a body with a Write method.
type rwc struct {
	io.ReadCloser
	io.Writer
}

// After an upgrade, the context of the request lasts as long as the connection.
func TestTransport_UpgradedContext(t *testing.T) {
	cause := errors.New("cause")
	for name, test := range map[string]struct {
		end   func(io.Closer, context.CancelCauseFunc)
		cause error
	}{
		"closed": {func(b io.Closer, _ context.CancelCauseFunc) { b.Close() }, context.Canceled},
		"parent": {func(_ io.Closer, cancel context.CancelCauseFunc) { cancel(cause) }, cause},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				parent, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				var ctx, below, ours context.Context
				base := roundTripFunc(func(r *http.Request) (*http.Response, error) {
					ctx = r.Context()
					var cancelBelow, cancelOurs context.CancelFunc
					below, cancelBelow = context.WithCancel(ctx)
					t.Cleanup(cancelBelow)
					ours, cancelOurs = deadline.WithTimeout(ctx, 24*time.Hour)
					t.Cleanup(cancelOurs)
					at, ok := ctx.Deadline()
					require.True(t, ok)
					require.Equal(t, time.Minute, time.Until(at))
					time.Sleep(time.Second)
					b := rwc{io.NopCloser(strings.NewReader("hello")), io.Discard}
					return &http.Response{StatusCode: http.StatusSwitchingProtocols, Body: b}, nil
				})
				resp, err := httptimeout.Transport(time.Minute, base).RoundTrip(upgradeRequest(parent, "http://test"))
				require.NoError(t, err)
				require.Implements(t, (*io.Writer)(nil), resp.Body)
				_, ok := resp.Body.(interface{ CloseWrite() error })
				require.False(t, ok, "the body of base has no CloseWrite")
				time.Sleep(time.Hour)
				_, err = io.ReadAll(resp.Body)
				require.NoError(t, err)
				synctest.Wait()
				for _, c := range []context.Context{ctx, below, ours} {
					require.NoError(t, c.Err())
					require.NoError(t, context.Cause(c))
				}
				_, ok = ctx.Deadline()
				require.False(t, ok)

				test.end(resp.Body, cancel)
				synctest.Wait()
				for _, c := range []context.Context{ctx, below, ours} {
					<-c.Done()
					require.ErrorIs(t, c.Err(), context.Canceled)
					require.Equal(t, test.cause, context.Cause(c))
				}
			})
		})
	}
}

// The timeout applies until the protocol is switched, as to any other request.
func TestTransport_UpgradeTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var ctx context.Context
		base := roundTripFunc(func(r *http.Request) (*http.Response, error) {
			ctx = r.Context()
			below, cancel := context.WithCancel(ctx)
			defer cancel()
			<-below.Done()
			return nil, context.Cause(below)
		})
		_, err := httptimeout.Transport(time.Minute, base).RoundTrip(upgradeRequest(t.Context(), "http://test"))
		require.Equal(t, context.DeadlineExceeded, err)
		require.Equal(t, context.DeadlineExceeded, ctx.Err())
		require.GreaterOrEqual(t, time.Since(start), time.Minute)
	})
}

// If the response is nil or has no body, Transport stops the timer, and returns the
// response unchanged.
func TestTransport_BaseReturnsNoBody(t *testing.T) {
	var req *http.Request
	var answer *http.Response
	client := &http.Client{Transport: httptimeout.Transport(time.Minute, roundTripFunc(func(r *http.Request) (*http.Response, error) {
		req = r
		r.Context().Done() // starts a timer
		return answer, nil
	}))}
	_, err := client.Get("http://test")
	require.ErrorContains(t, err, "nil *Response with a nil error")
	require.ErrorIs(t, req.Context().Err(), context.Canceled)

	answer = &http.Response{StatusCode: http.StatusNoContent}
	resp, err := client.Get("http://test")
	require.NoError(t, err)
	rest, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Empty(t, rest)
	require.ErrorIs(t, req.Context().Err(), context.Canceled)
}

func TestTransport_BasePanics(t *testing.T) {
	var ctx context.Context
	tr := httptimeout.Transport(time.Minute, roundTripFunc(func(r *http.Request) (*http.Response, error) {
		ctx = r.Context()
		ctx.Done() // starts a timer
		panic("base")
	}))
	for _, req := range []*http.Request{
		httptest.NewRequest(http.MethodGet, "/", nil),
		upgradeRequest(t.Context(), "http://test"),
	} {
		require.PanicsWithValue(t, "base", func() { tr.RoundTrip(req) })
		require.ErrorIs(t, ctx.Err(), context.Canceled)
	}
}
