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

// Handler returns a handler that calls h with requests whose contexts are done
// after timeout, and when h has returned. It panics if h is nil or timeout is not positive.
//
// h gets a copy of the request. If h calls ParseMultipartForm, the files with its uploads
// are removed when the request ends, as without Handler, or earlier if the client goes
// away: a handler around this one may then find them gone. They are also removed where
// package http would leave them: below [http.TimeoutHandler], once that has answered and h
// has returned, and below handlers that copy the request.
//
// A client's trailers reach h if the client declares them in a Trailer header. If it
// declares none, none reach h, also where they would without Handler. All trailers of
// the response reach the client.
func Handler(timeout time.Duration, h http.Handler) http.Handler {
	mustBePositive("Handler", timeout)
	if h == nil {
		panic("httptimeout: Handler with a nil handler")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := deadline.WithTimeout(r.Context(), timeout)
		defer cancel()
		timed := r.WithContext(ctx)
		defer handBackForm(r, timed)
		h.ServeHTTP(w, timed)
	})
}

func mustBePositive(function string, timeout time.Duration) {
	if timeout <= 0 {
		panic(fmt.Sprintf("httptimeout: %s: the timeout must be positive, got %v", function, timeout))
	}
}

// handBackForm gives r the form that a handler has parsed of timed, r's copy. When a
// request ends, package http removes the files of its form, but looks at none of the
// copies. If r is a copy itself, the files go when its context ends. If that has ended
// before, because an http.TimeoutHandler did not wait for the handler, they go now.
// Both may remove them at the same time: RemoveAll changes nothing in the form.
func handBackForm(r, timed *http.Request) {
	form := timed.MultipartForm
	if form == r.MultipartForm {
		return // not parsed, or by r's own handler
	}
	r.MultipartForm = form
	if form != nil && len(form.File) > 0 {
		context.AfterFunc(r.Context(), func() { form.RemoveAll() })
	}
}

// Transport returns a RoundTripper that passes requests on to base, with contexts
// that are done after timeout. The time includes reading the response's body, unless
// that is what follows a 101 Switching Protocols response: once such a response has
// arrived for a request with an Upgrade header, the timeout no longer applies, and the
// context lasts until the body is closed or the context that the request came with is
// done. A request without that header keeps its timeout whatever the response.
//
// The body of a response has the methods Write and CloseWrite if base's body has
// them. CloseIdleConnections calls base's if it has one. A nil base means
// [http.DefaultTransport]. Transport panics if timeout is not positive.
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
	ctx, cancel := context.WithTimeout(r.Context(), t.timeout) // package http waits for it
	var upgrade *upgradeCtx
	if r.Header.Get("Upgrade") != "" {
		upgrade = newUpgradeCtx(ctx, cancel)
		ctx, cancel = upgrade, upgrade.cancel
	}
	handedOver := false
	defer func() {
		if !handedOver { // an error, no body, or a panic
			cancel()
		}
	}()
	resp, err := t.base.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	if resp == nil || resp.Body == nil {
		return resp, nil // http.Client knows what to do with either
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		if upgrade != nil {
			upgrade.dropTimeout(r.Context())
		}
		resp.Body = withWriter(&connBody{resp.Body, cancel}, resp.Body)
	} else {
		resp.Body = withWriter(&body{ReadCloser: resp.Body, cancel: cancel}, resp.Body)
	}
	handedOver = true
	return resp, nil
}

// CloseIdleConnections is what [http.Client.CloseIdleConnections] calls.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

type closeWriter interface{ CloseWrite() error }

// withWriter returns b with the methods Write and CloseWrite of base's body, as far as
// that has them. Callers find out by a type assertion, so b must not have more.
func withWriter(b, base io.ReadCloser) io.ReadCloser {
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

// connBody is what follows a 101 response. It ends the request's context only when it
// is closed: after a read has failed or met the end, the other side may still read.
type connBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *connBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// body ends its request's context once it has been read or closed.
type body struct {
	io.ReadCloser
	cancel context.CancelFunc
	once   sync.Once
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.once.Do(b.cancel)
	}
	return n, err
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.once.Do(b.cancel)
	return err
}
