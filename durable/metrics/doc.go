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
// If the store's numbers are older than [WithMaxAge], a scrape calls [durable.Client.Stats].
// It waits up to 5 seconds for the store. If the store does not answer, the next call
// comes after WithMaxAge.
//
// All other metrics are in memory, and cost O(n log n) for n handlers.
//
// # Concurrency
//
// Several exporters may share a Source.
package metrics
