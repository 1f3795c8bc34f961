// Package metric describes the numbers that the exporters of package observe export, so
// that all export the same. Users of the exporters can skip it. It is public because the
// exporters and package durable/metrics are modules of their own, and because a program can
// make Sources of its own things.
//
//   - A [Thing] describes a type that has numbers, such as Scheduler. It lists the
//     metrics.
//   - A [Source] returns things of one type.
//   - A [Set] reads the things of several sources.
//
// # Names
//
// A metric's name follows OpenTelemetry's rules: words with dots between them, no unit,
// and no "total". [Metric.Prometheus] converts it to a name for Prometheus.
package metric
