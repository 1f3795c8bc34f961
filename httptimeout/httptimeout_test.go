package httptimeout_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/httptimeout"
)

func TestHandler_EndsTheRequestsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var after context.Context
		h := httptimeout.Handler(time.Second, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			after = r.Context()
			done := r.Context().Done()
			time.Sleep(time.Second - 1)
			require.NoError(t, r.Context().Err())
			if r.URL.Path == "/slow" {
				<-done
				require.ErrorIs(t, r.Context().Err(), context.DeadlineExceeded)
			}
		}))
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
		require.ErrorIs(t, after.Err(), context.Canceled, "the handler has returned")
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/slow", nil))
		require.ErrorIs(t, after.Err(), context.DeadlineExceeded)
	})
}

// stub answers every request, and records it.
type stub struct {
	req  *http.Request
	err  error
	body io.ReadCloser
}

func (s *stub) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.req = r; s.err != nil {
		return nil, s.err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: s.body, Request: r}, nil
}

func TestTransport_EndsWithTheBody(t *testing.T) {
	base := &stub{err: io.ErrUnexpectedEOF}
	tr := httptimeout.Transport(time.Minute, base)
	req := httptest.NewRequest(http.MethodGet, "/", nil)
	_, err := tr.RoundTrip(req)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.ErrorIs(t, base.req.Context().Err(), context.Canceled)
	for _, end := range []func(io.ReadCloser){
		func(b io.ReadCloser) { b.Close() },
		func(b io.ReadCloser) { io.ReadAll(b) },
	} {
		rec := httptest.NewRecorder()
		rec.WriteString("hello")
		base.err, base.body = nil, rec.Result().Body
		resp, err := tr.RoundTrip(req)
		require.NoError(t, err)
		require.NoError(t, base.req.Context().Err(), "the body has not been read")
		_, hasDeadline := base.req.Context().Deadline()
		require.True(t, hasDeadline)
		end(resp.Body)
		require.ErrorIs(t, base.req.Context().Err(), context.Canceled)
	}
	require.NoError(t, req.Context().Err())
}

func TestNew_Panics(t *testing.T) {
	require.PanicsWithValue(t, "httptimeout: Handler: the timeout must be positive, got 0s", func() { httptimeout.Handler(0, nil) })
	require.PanicsWithValue(t, "httptimeout: Handler with a nil handler", func() { httptimeout.Handler(time.Second, nil) })
	require.PanicsWithValue(t, "httptimeout: Transport: the timeout must be positive, got -1s", func() { httptimeout.Transport(-time.Second, nil) })
}
