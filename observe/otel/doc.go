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
// Register creates asynchronous instruments for counters and gauges. OpenTelemetry has
// no asynchronous instrument for histograms, and the Schedulers already keep them, so
// the reader gets them from the Exporter as a Producer. Views apply to the instruments
// only, not to the histograms.
//
// Leave readers at cumulative temporality, the SDK's default. The histograms are always
// cumulative. A reader with delta temporality reports the first value of a counter as
// an increase: at the start of a process, and when a durable store answers again, it
// would report the store's totals since its creation.
//
// The Exporter exports every open Scheduler that has a name, which timer.WithName
// gives. Package observe makes Sources of other things. observe/metrics.csv lists the
// metrics. They are the same as those of package prom, translated by OpenTelemetry's
// rules.
//
// # Concurrency
//
// Any number of readers may use an Exporter at once. An Exporter starts no goroutine
// and costs nothing until a reader collects.
//
// # Complexity
//
// Collecting is O(shards) for each Scheduler, however many timers are pending.
package otel
