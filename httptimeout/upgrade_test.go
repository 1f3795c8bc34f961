package httptimeout_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/httptimeout"
)

// A hijackable is a ResponseWriter whose connection can be taken over.
type hijackable struct {
	*httptest.ResponseRecorder
	conn net.Conn // nil: Hijack fails
}

func (h hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if h.conn == nil {
		return nil, nil, errors.New("no connection")
	}
	return h.conn, nil, nil
}

// ZaparooProject/zaparoo-core#1430: a timeout for requests ended the sessions of
// WebSockets too.
func TestHandler_TimeoutEndsAtAnUpgrade(t *testing.T) {
	conn, peer := net.Pipe()
	defer conn.Close()
	defer peer.Close()
	for name, test := range map[string]struct {
		header string
		hijack bool
		conn   net.Conn
		ended  bool
	}{
		"upgrade":                 {header: "websocket", hijack: true, conn: conn},
		"upgrade refused":         {header: "websocket", ended: true},
		"upgrade fails":           {header: "websocket", hijack: true, ended: true},
		"hijack without a header": {hijack: true, conn: conn, ended: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ctx context.Context
				h := httptimeout.Handler(time.Minute, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					ctx = r.Context()
					if test.hijack {
						c, _, err := http.NewResponseController(w).Hijack()
						require.Equal(t, test.conn == nil, err != nil)
						require.Equal(t, test.conn, c)
					}
					time.Sleep(time.Minute - 1)
					require.NoError(t, ctx.Err())
					time.Sleep(time.Hour)
					require.Equal(t, test.ended, ctx.Err() != nil)
					if test.ended {
						require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
						require.ErrorIs(t, context.Cause(ctx), context.DeadlineExceeded)
					}
				}))
				parent, cancel := context.WithCancel(t.Context())
				defer cancel()
				r := httptest.NewRequestWithContext(parent, "GET", "/", nil)
				if test.header != "" {
					r.Header.Set("Upgrade", test.header)
				}
				// Twice, as with a second timeout for some routes.
				httptimeout.Handler(2*time.Minute, h).ServeHTTP(hijackable{httptest.NewRecorder(), test.conn}, r)
				<-ctx.Done() // the handler has returned
			})
		})
	}
}

func TestHandler_UpgradeEndsWithTheRequestsContext(t *testing.T) {
	conn, peer := net.Pipe()
	defer conn.Close()
	defer peer.Close()
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithCancelCause(t.Context())
		shutdown := errors.New("shutdown")
		time.AfterFunc(time.Hour, func() { cancel(shutdown) })
		h := httptimeout.Handler(time.Minute, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _, err := w.(http.Hijacker).Hijack()
			require.NoError(t, err)
			begin := time.Now()
			<-r.Context().Done()
			require.Equal(t, time.Hour, time.Since(begin))
			require.Equal(t, shutdown, context.Cause(r.Context()))
		}))
		r := httptest.NewRequestWithContext(parent, "GET", "/", nil)
		r.Header.Set("Upgrade", "websocket")
		h.ServeHTTP(hijackable{httptest.NewRecorder(), conn}, r)
	})
}

// The ResponseWriter of a request that asks for an upgrade, and does not get it, writes
// like the original.
func TestHandler_UpgradeWriterWrites(t *testing.T) {
	rec := httptest.NewRecorder()
	h := httptimeout.Handler(time.Minute, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X", "1")
		w.WriteHeader(http.StatusAccepted)
		_, err := io.Copy(w, strings.NewReader("copied"))
		require.NoError(t, err)
		w.(http.Flusher).Flush()
		require.Same(t, rec, w.(interface{ Unwrap() http.ResponseWriter }).Unwrap())
		require.ErrorIs(t, func() error { _, _, err := w.(http.Hijacker).Hijack(); return err }(), http.ErrNotSupported)
	}))
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Upgrade", "h2c")
	h.ServeHTTP(rec, r)
	require.Equal(t, http.StatusAccepted, rec.Code)
	require.Equal(t, "copied", rec.Body.String())
	require.True(t, rec.Flushed)
}
