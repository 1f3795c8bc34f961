// Package otel exports the numbers of Schedulers, and of what stands on them, through
// OpenTelemetry.
//
// # Usage
//
//	exporter := otel.New(observe.Schedulers())
//	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(
//		sdkmetric.NewPeriodicReader(otlp, sdkmetric.WithProducer(exporter))))
//	registration, err := exporter.Register(provider)
//
// Counts and gauges are asynchronous instruments, which Register makes. Histograms are
// kept by the Schedulers already, and OpenTelemetry has no asynchronous instrument for
// these. So the Exporter is a Producer too, which the reader asks for them. Views apply
// to the instruments, not to the histograms.
//
// Leave readers at cumulative temporality, the SDK's default. Histograms are cumulative
// whatever a reader prefers. And a reader of deltas takes the first value of a counter
// for an increase: the totals of a durable store, which count since the store was made,
// it would report in full when a process starts and when the store answers again.
//
// Give a Scheduler a name with timer.WithName, and it is exported for as long as it is
// open. Package observe makes Sources of other things. observe/metrics.csv lists the
// metrics. They are the same as those of package prom, by the mapping that
// OpenTelemetry prescribes.
//
// # Concurrency
//
// Any number of readers may use an Exporter at once. It starts no goroutine, and nothing
// costs anything until a reader collects.
//
// # Complexity
//
// Collecting is O(shards) for each Scheduler, however many timers are pending.
package otel
