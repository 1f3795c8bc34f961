// Package observe tells an exporter which things to export: Schedulers, keyed Timers,
// purgatories, and the Monitors and Conns of package idle. Each thing is a [Source] of
// numbers.
//
// The exporters are packages below this one. All of them export the same numbers, which
// the file observe/metrics.csv lists:
//
//   - observe/prom: a collector for Prometheus; a separate module.
//   - observe/otel: instruments and a producer for OpenTelemetry; a separate module.
//   - observe/vars: a variable for the standard library's expvar.
//
// # Usage
//
//	prometheus.MustRegister(prom.New(
//		observe.Schedulers(),                  // all that have names; Default's is "default"
//		observe.Keyed("sessions", sessions),
//		observe.Purgatory("produce", purgatory),
//	))
//
// # Concurrency
//
// Any goroutine may use a Source, and several exporters may share one.
//
// # In a testing/synctest bubble
//
// A Scheduler that was made in a bubble can be read from outside, and the other way
// round. A durable store in memory can be read only where it was made.
//
// # Complexity
//
// Reading a Scheduler is O(shards), however many timers are pending. Nothing is read
// until an exporter reads it.
package observe
