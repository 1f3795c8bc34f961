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
// The example exports every open Scheduler that has a name (timer.WithName). Package
// observe makes Sources of other things. The file observe/metrics.csv lists the metrics.
// They are the same as in package prom, with names that follow OpenTelemetry's rules.
//
// Register exports the counters and gauges. The reader gets the histograms from the
// Exporter, which is a Producer. Views do not apply to the histograms.
//
// Leave readers at cumulative temporality, the SDK's default. With delta temporality, the
// first value of a counter counts as an increase, even if a durable store has counted for
// months.
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
