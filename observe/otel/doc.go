// Package otel exports the metrics of Schedulers, and of the packages built on them,
// through OpenTelemetry.
//
// # Usage
//
//	exporter := otel.New(observe.Schedulers())
//	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(
//		sdkmetric.NewPeriodicReader(otlp, sdkmetric.WithProducer(exporter))))
//	registration, err := exporter.Register(provider)
//
// Register creates asynchronous instruments for counters and gauges. Histograms have no
// asynchronous instrument in OpenTelemetry. So the reader gets them from the Exporter,
// which is a Producer. Views apply only to the instruments, not to the histograms.
//
// Leave readers at cumulative temporality, the SDK's default. With delta temporality, a
// reader reports the first value of a counter as an increase. When a process starts, or a
// durable store answers again, this would be the total since the store was created.
//
// The example exports every open Scheduler that has a name (timer.WithName). Package
// observe makes Sources of other things. The file observe/metrics.csv lists the metrics.
// They are the same as in package prom, with names that follow OpenTelemetry's rules.
//
// # Concurrency
//
// Several readers may use an Exporter at once. An Exporter starts no goroutine, and costs
// nothing until a reader collects.
//
// # Complexity
//
// Collecting is O(shards) for each Scheduler, however many timers are pending.
package otel
