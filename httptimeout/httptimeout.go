package httptimeout

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/tickless/tickless/deadline"
)

// Handler returns a handler that calls h with a request whose context is done after
// timeout, or when h has returned. It panics if h is nil or timeout is not positive.
//
// The timeout does not end a read of the request's body: see [http.Server.ReadTimeout] and
// [http.ResponseController.SetReadDeadline].
//
// h gets a copy of the request. If h calls ParseMultipartForm and the client disconnects,
// the uploaded files may be removed as soon as h has returned.
//
// A client's trailers reach h only if the client declares them in a Trailer header.
//
// If a request has an Upgrade header and h takes over its connection, to answer with 101
// Switching Protocols, the timeout no longer applies. h gets such a request with a
// ResponseWriter of this package, whose method Unwrap returns the original. Before that, if
// the request times out, contexts that are derived from its context report
// [context.Canceled], with the cause [context.DeadlineExceeded].
func Handler(timeout time.Duration, h http.Handler) http.Handler {
	mustBePositive("Handler", timeout)
	if h == nil {
		panic("httptimeout: Handler with a nil handler")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var ctx context.Context
		var cancel context.CancelFunc
		if r.Header.Get("Upgrade") == "" {
			ctx, cancel = deadline.WithTimeout(r.Context(), timeout)
		} else {
			c := newUpgradeCtx(r.Context(), timeout)
			ctx, cancel, w = c, c.cancel, &upgradeWriter{w, c.dropTimeout}
		}
		defer cancel()
		timedRequest := r.WithContext(ctx)
		defer copyForm(r, timedRequest)
		h.ServeHTTP(w, timedRequest)
	})
}

func mustBePositive(function string, timeout time.Duration) {
	if timeout <= 0 {
		panic(fmt.Sprintf("httptimeout: %s: the timeout must be positive, got %v", function, timeout))
	}
}

// copyForm gives r the form that a handler has parsed from timedRequest, a copy of r.
// copyForm also removes the form's files when r's context ends. Package http does that
// only for its own request, and r may be another handler's copy.
func copyForm(r, timedRequest *http.Request) {
	form := timedRequest.MultipartForm
	if form == r.MultipartForm {
		return // not parsed, or parsed before r was copied
	}
	r.MultipartForm = form
	if form != nil && len(form.File) > 0 {
		context.AfterFunc(r.Context(), func() { form.RemoveAll() }) // may remove the files a second time, which is safe
	}
}

// Transport returns a RoundTripper that passes requests to base, with contexts that are
// done after timeout. The timeout includes reading the response's body. A nil base
// means [http.DefaultTransport]. Transport panics if timeout is not positive.
//
// If a request with an Upgrade header gets a 101 Switching Protocols response, the
// timeout no longer applies. The context is then done when the body is closed, or when
// the request's original context is done.
//
// A response's body has the methods Write and CloseWrite if base's body has them.
func Transport(timeout time.Duration, base http.RoundTripper) http.RoundTripper {
	mustBePositive("Transport", timeout)
	if base == nil {
		base = http.DefaultTransport
	}
	return &transport{timeout: timeout, base: base}
}

type transport struct {
	timeout time.Duration
	base    http.RoundTripper
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	var ctx context.Context
	var cancel context.CancelFunc
	dropTimeout := func() {}
	if r.Header.Get("Upgrade") == "" {
		ctx, cancel = context.WithTimeout(r.Context(), t.timeout) // package http waits for the context, so it is not one of package deadline
	} else {
		c := newUpgradeCtx(r.Context(), t.timeout)
		ctx, cancel, dropTimeout = c, c.cancel, c.dropTimeout
	}
	bodyCallsCancel := false // whether the response's body calls cancel
	defer func() {
		if !bodyCallsCancel { // an error, no body, or a panic
			cancel()
		}
	}()
	resp, err := t.base.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	if resp == nil || resp.Body == nil {
		return resp, nil // http.Client handles both cases
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		dropTimeout()
		resp.Body = withWriteMethods(&upgradedBody{resp.Body, cancel}, resp.Body)
	} else {
		resp.Body = withWriteMethods(&timedBody{ReadCloser: resp.Body, cancel: cancel}, resp.Body)
	}
	bodyCallsCancel = true
	return resp, nil
}

// CloseIdleConnections is called by [http.Client.CloseIdleConnections].
func (t *transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

type closeWriter interface{ CloseWrite() error }

// withWriteMethods adds base's methods Write and CloseWrite to b. If base lacks a
// method, b lacks it too: callers test for it by a type assertion.
func withWriteMethods(b, base io.ReadCloser) io.ReadCloser {
	w, writes := base.(io.Writer)
	c, closes := base.(closeWriter)
	switch {
	case writes && closes:
		return struct {
			io.ReadCloser
			io.Writer
			closeWriter
		}{b, w, c}
	case writes:
		return struct {
			io.ReadCloser
			io.Writer
		}{b, w}
	}
	return b
}

// upgradedBody is the body of a 101 response. Only Close ends the request's context:
// the client may still write after it has read everything.
type upgradedBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *upgradedBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// timedBody is the body of a response that is not a 101. It ends the request's context
// when it is closed, or when Read returns an error or io.EOF.
type timedBody struct {
	io.ReadCloser
	cancel     context.CancelFunc
	cancelOnce sync.Once
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.cancelOnce.Do(b.cancel)
	}
	return n, err
}

func (b *timedBody) Close() error {
	err := b.ReadCloser.Close()
	b.cancelOnce.Do(b.cancel)
	return err
}
