// Package metrics exports the numbers of durable Clients and Workers through the
// exporters of package observe: to Prometheus, OpenTelemetry, expvar and the debug
// page.
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
// A scrape reads the store's numbers with one call of [durable.Client.Stats], unless
// the numbers of the last call are younger than [WithMaxAge]. It waits for the store up
// to 5 seconds. After a timeout, later scrapes do not wait until the store is read
// again. All other metrics are in memory: O(n log n) for n handlers.
//
// # Concurrency
//
// Any number of exporters may share a Source.
package metrics
