// Package httptimeout limits how long each request of a net/http server or client may
// take.
//
// # Usage
//
//	srv := &http.Server{Handler: httptimeout.Handler(30*time.Second, mux), ReadTimeout: 30 * time.Second}
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
//   - On a client, the time to read the response's body counts too. Each request starts a
//     timer. It stops when the body has been read or closed.
//   - After a 101 response to a request with an Upgrade header, the timeout no longer
//     applies: on a client when the response has come, on a server when the handler has
//     taken over the connection (see [http.Hijacker]).
//
// # When not to use it
//
// [http.TimeoutHandler] answers for a handler that is too slow. With Handler, your own
// handler must notice the timeout and answer. It cannot while it reads a body that the
// client sends slowly: so set the server's ReadTimeout too.
//
// For most clients the field Timeout of [http.Client] is enough. Transport is for
// timeouts that differ by transport, and for upgraded connections that outlive the
// timeout.
package httptimeout
