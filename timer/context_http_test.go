package timer_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/timer"
	"github.com/tickless/tickless/timertest"
)

// A client's request under a deadline of ours: it times out, as the error says,
// and the server sees it go.
func TestContext_HTTPClient(t *testing.T) {
	clk := timertest.NewClock(time.Now()) // package net compares deadlines with the system's
	s := timer.New(timer.WithClock(clk))
	defer s.Close()
	gone := make(chan error, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" || r.URL.Path == "/hangs" {
			if r.URL.Path == "/slow" {
				clk.Advance(time.Hour)
			}
			<-r.Context().Done()
			gone <- r.Context().Err()
			return
		}
		io.WriteString(w, "hello")
		if r.URL.Path == "/stalls" {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			gone <- r.Context().Err()
		}
	}))
	defer srv.Close()
	get := func(ctx context.Context, path string) (string, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+path, nil)
		require.NoError(t, err)
		resp, err := srv.Client().Do(req)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		if path == "/stalls" {
			clk.Advance(time.Hour)
		}
		body, err := io.ReadAll(resp.Body)
		return string(body), err
	}

	ctx, cancel := s.WithTimeout(context.Background(), time.Hour)
	body, err := get(ctx, "/")
	require.NoError(t, err)
	require.Equal(t, "hello", body)
	cancel()
	_, err = get(ctx, "/")
	require.ErrorIs(t, err, context.Canceled)

	ctx, cancel = s.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	_, err = get(ctx, "/slow")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	var urlErr *url.Error
	require.ErrorAs(t, err, &urlErr)
	require.True(t, urlErr.Timeout())
	require.Equal(t, context.Canceled, <-gone)

	// In the middle of the body.
	ctx, cancel = s.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	_, err = get(ctx, "/stalls")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, context.Canceled, <-gone)

	// Through a parent of package context's.
	parent, cancelParent := context.WithCancelCause(context.Background())
	ctx, cancel = s.WithTimeout(parent, time.Hour)
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		_, err := get(ctx, "/hangs")
		failed <- err
	}()
	cancelParent(errParent)
	// What a request that was cancelled returns is the context's cause.
	require.True(t, errors.Is(<-failed, errParent) || ctx.Err() == context.Canceled)
	require.Equal(t, errParent, context.Cause(ctx))
}

// A handler's own deadline under the request's context, and a request that the
// client gives up.
func TestContext_HTTPServer(t *testing.T) {
	s := timer.New()
	defer s.Close()
	entered, seen := make(chan struct{}), make(chan error, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d := time.Hour
		if r.URL.Path == "/short" {
			d = 10 * time.Millisecond
		}
		ctx, cancel := s.WithTimeout(r.Context(), d)
		defer cancel()
		require.NotNil(t, ctx.Value(http.ServerContextKey))
		if r.URL.Path == "/long" {
			close(entered)
		}
		<-ctx.Done()
		if ctx.Err() == context.DeadlineExceeded {
			w.WriteHeader(http.StatusGatewayTimeout)
		}
		seen <- ctx.Err()
	}))
	defer srv.Close()

	resp, err := srv.Client().Get(srv.URL + "/short")
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, http.StatusGatewayTimeout, resp.StatusCode)
	require.Equal(t, context.DeadlineExceeded, <-seen)

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+"/long", nil)
	require.NoError(t, err)
	go func() {
		<-entered
		cancel()
	}()
	_, err = srv.Client().Do(req)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, context.Canceled, <-seen)
}

// A server whose requests all derive from one of ours.
func TestContext_HTTPServerBaseContext(t *testing.T) {
	s := timer.New()
	defer s.Close()
	base, cancelBase := s.WithTimeout(context.Background(), time.Hour)
	entered := make(chan struct{})
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-r.Context().Done()
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	srv.Config.BaseContext = func(net.Listener) context.Context { return base }
	srv.Start()
	defer srv.Close()
	status := make(chan int)
	for range 3 {
		go func() {
			resp, err := srv.Client().Get(srv.URL)
			if err != nil {
				t.Error(err)
				status <- 0
				return
			}
			resp.Body.Close()
			status <- resp.StatusCode
		}()
	}
	for range 3 {
		<-entered
	}
	cancelBase()
	for range 3 {
		require.Equal(t, http.StatusServiceUnavailable, <-status)
	}
}
