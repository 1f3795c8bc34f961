// Package httptimeout limits how long each request of a net/http server or client may
// take, including the time to read its body. The timeout ends with the request.
//
// # Usage
//
//	srv := &http.Server{Handler: httptimeout.Handler(30*time.Second, mux)}
//	client := &http.Client{Transport: httptimeout.Transport(10*time.Second, nil)}
//
// # Guarantees
//
//   - A request's context is done when the timeout has passed, or when the request's
//     original context is done. It never times out early.
//   - On a server, a request starts no timer until its context is waited for: see
//     package deadline.
//   - On a client, each request starts a timer, because [http.Transport] waits for the
//     context. The timer stops when the response's body has been read or closed.
//   - A 101 response to a request with an Upgrade header ends the timeout.
//
// # When not to use it
//
// If the server should answer for a slow handler, use [http.TimeoutHandler]. It buffers
// the response, and sends an error after the timeout. With Handler, your own handler
// chooses the answer.
//
// For most clients the field Timeout of [http.Client] is enough. Transport is for
// timeouts that differ by transport, and for upgraded connections that outlive the
// timeout.
package httptimeout
