// Package service serves durable tasks that are calls of URLs: an API, a page, metrics and
// probes, over any durable.Client. `tickless serve` is this package with a store and a
// worker.
//
// # Usage
//
//	s := service.New(client, service.Config{})
//	go s.Run(ctx)
//	http.Serve(listener, s)
//
// The program runs workers that make the calls:
//
//	calls := callback.New()
//	worker.Handle(callback.Name, api.Handler(client, calls.Handle))
//
// docs/service.md describes the service for its users.
//
// # Guarantees
//
//   - Without Config.Tokens, only requests for a loopback host or one of Config.Hosts are
//     answered, so that no web site reaches the service through a browser.
//   - With tokens, every request but the probes needs one. Tokens are compared in constant
//     time. A token that may only read changes nothing.
//   - A request that another site causes changes nothing.
//
// # Concurrency
//
// A Service may serve any number of requests at once; beyond 512 it answers 429.
package service
