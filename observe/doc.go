// Package observe tells exporters what to export: the numbers of Schedulers, keyed Timers,
// purgatories, and the Monitors and Conns of package idle.
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
// A durable store in memory that was made in a bubble can be read there alone: outside it
// counts as a store that does not answer.
//
// # Complexity
//
// Reading a Scheduler is O(shards), however many timers are pending. Nothing is read until
// an exporter asks.
package observe
