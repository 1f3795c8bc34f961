// Package observe says whose numbers are exported: of which Schedulers, keyed Timers,
// purgatories and monitors.
//
// The exporters stand below it. All of them export the same numbers, which
// observe/metrics.csv lists one by one:
//
//   - observe/prom: a collector for Prometheus; a module of its own.
//   - observe/otel: instruments and a producer for OpenTelemetry; a module of its own.
//   - observe/expvar: a variable for the standard library's expvar.
//
// # Usage
//
//	prometheus.MustRegister(prom.New(
//		observe.Schedulers(),                  // all that have names
//		observe.Keyed("sessions", sessions),
//		observe.Purgatory("produce", purgatory),
//	))
//
// # Concurrency
//
// Any goroutine may use a Source, and any number of exporters may share one.
//
// # In a testing/synctest bubble
//
// A Scheduler that was made in a bubble can be read from outside, and the other way round.
// A queue of durable tasks in memory can be read in its bubble alone; outside it is not up.
//
// # Complexity
//
// Reading a Scheduler is O(shards), however many timers are pending. Nothing is read until
// an exporter asks.
package observe
