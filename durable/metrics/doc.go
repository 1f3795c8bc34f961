// Package metrics exports the numbers of durable Clients and Workers, through the
// exporters of package observe: Prometheus, OpenTelemetry, expvar and the debug page.
//
// # Usage
//
//	prometheus.MustRegister(prom.New(
//		observe.Schedulers(),
//		metrics.Client("orders", client),
//		metrics.Worker("mailer", worker),
//	))
//
// observe/metrics.csv lists the metrics.
//
// # Cost of a scrape
//
// A scrape calls [durable.Client.Stats] if the numbers of the last call are older than
// [WithMaxAge]. It waits up to 5 seconds for the store. After a timeout, scrapes
// return at once until it is time for the next call.
//
// All other metrics are in memory, and cost O(n log n) for n handlers.
//
// # Concurrency
//
// Several exporters may share a Source.
package metrics
