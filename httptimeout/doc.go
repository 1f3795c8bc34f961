// Package httptimeout gives each request of a net/http server or client its
// deadline from a Scheduler.
//
// # Usage
//
//	s := timer.New()
//	srv := &http.Server{Handler: httptimeout.Handler(s, 30*time.Second, mux)}
//	client := &http.Client{Transport: httptimeout.Transport(s, 10*time.Second, nil)}
//
// # Guarantees
//
// A request's context is done once its deadline has passed, and never before. It is late
// by as much as package timer's contexts are, slack included. It is also done when the
// context that the request came with is. On a server the deadline costs no timer while
// nobody waits for it. A client's does, since [http.Transport] waits for the context of
// every request. A 101 response to a request with an Upgrade header ends the timeout.
//
// # When not to use it
//
// [http.TimeoutHandler] also answers the client with an error when the time is up,
// and buffers the response to do so. With Handler, your handler decides what to
// answer.
package httptimeout
