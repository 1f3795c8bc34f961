// Package httptimeout limits how long each request of a net/http server or client may
// take, including the reading of its body, and releases the timeout when the request
// ends.
//
// # Usage
//
//	srv := &http.Server{Handler: httptimeout.Handler(30*time.Second, mux)}
//	client := &http.Client{Transport: httptimeout.Transport(10*time.Second, nil)}
//
// # Guarantees
//
// A request's context is done when its deadline has passed, and never before. It is also
// done when the original context of the request is done. On a server the deadline costs
// no timer until it is waited for: the context is one of package deadline. On a client it
// costs a timer, since [http.Transport] waits for the context of every request. The timer
// is stopped when the response's body has been read or closed. A 101 response to a
// request with an Upgrade header ends the timeout.
//
// # When not to use it
//
// [http.TimeoutHandler] buffers the response, and answers the client with an error after
// the timeout. With Handler, your own handler chooses the answer. [http.Client] has a
// field Timeout, which is enough for most clients. Transport is for timeouts that differ
// by transport, and for upgraded connections that outlive the timeout.
package httptimeout
