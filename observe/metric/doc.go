// Package metric describes the numbers that the exporters of package observe export: the
// name and the meaning of each, and how to read it. All exporters use this package, so
// that they export the same numbers.
//
//   - A [Thing] describes a type that has numbers, such as Scheduler. It lists the metrics.
//   - A [Source] returns things of one type.
//   - A [Set] reads the things of several sources.
//
// # Names
//
// A metric's name follows OpenTelemetry's rules: words with dots between them, no unit,
// and no "total". [Metric.Prometheus] converts it to a name for Prometheus, as
// OpenTelemetry prescribes.
package metric
