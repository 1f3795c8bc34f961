// Package httptimeout bounds the time that each request of a net/http server or client
// takes, reading its body included, and lets go of the deadline when the request is over.
//
// # Usage
//
//	srv := &http.Server{Handler: httptimeout.Handler(30*time.Second, mux)}
//	client := &http.Client{Transport: httptimeout.Transport(10*time.Second, nil)}
//
// # Guarantees
//
// A request's context is done once its deadline has passed, and never before. It is also
// done when the context that the request came with is. On a server the deadline costs no
// timer while nobody waits for it: the context is one of package deadline. On a client it
// costs a timer, since [http.Transport] waits for the context of every request; the timer
// is stopped when the response's body has been read or closed. A 101 response to a request
// with an Upgrade header ends the timeout.
//
// # When not to use it
//
// [http.TimeoutHandler] also answers the client with an error when the time is up,
// and buffers the response to do so. With Handler, your handler decides what to
// answer. [http.Client] has a field Timeout, which does for most clients what Transport
// does; Transport is for timeouts that differ by transport, and for upgraded connections
// that outlive the timeout.
package httptimeout
