// Package httptimeout limits how long each request of a net/http server or client may
// take, including the time to read its body.
//
// # Usage
//
//	srv := &http.Server{Handler: httptimeout.Handler(30*time.Second, mux)}
//	client := &http.Client{Transport: httptimeout.Transport(10*time.Second, nil)}
//
// # Guarantees
//
//   - A request's context is done when the timeout has passed, never earlier, or when
//     the request's original context is done.
//   - On a server, a request starts no timer until its context is waited for: see
//     package deadline. A proxy waits for it: with [net/http/httputil.ReverseProxy] as the
//     handler, each request starts a timer, as with [context.WithTimeout]. So does a
//     request with an Upgrade header.
//   - On a client, each request starts a timer. It stops when the response's body has
//     been read or closed.
//   - After a 101 response to a request with an Upgrade header, the timeout no longer
//     applies: on a client when the response has come, on a server when the handler has
//     taken over the connection (see [http.Hijacker]).
//
// # When not to use it
//
// [http.TimeoutHandler] answers for a handler that is too slow. With Handler, your own
// handler must notice the timeout and answer.
//
// For most clients the field Timeout of [http.Client] is enough. Transport is for
// timeouts that differ by transport, and for upgraded connections that outlive the
// timeout.
package httptimeout
