// Package metrics exports the numbers of durable Clients and Workers, with the exporters
// of package observe: for Prometheus, OpenTelemetry and expvar, and on the debug page.
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
// # What a scrape costs
//
// What is in the store is asked for by a scrape, in one call of [durable.Client.Stats],
// unless what it said last is younger than [WithMaxAge] says. A scrape waits for the
// store as long as [WithTimeout] says, and when a store has not answered the next
// scrapes do not wait at all, until it is asked again. All else is in memory: O(n log n)
// for n handlers.
//
// # Concurrency
//
// Any number of exporters may share a Source.
package metrics
