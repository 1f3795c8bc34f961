// Package metric describes the numbers that the exporters of package observe export: the
// name and the meaning of each, and how to read it.
//
// A [Thing] is a type of thing that has numbers, such as a Scheduler, and lists its
// metrics. A [Source] returns things of one type. A [Set] reads sources. All exporters
// are built on these, so that they export the same.
//
// # Names
//
// A metric's name follows OpenTelemetry's rules: words with dots between them, no unit,
// and no "total". [Metric.Prometheus] converts it to Prometheus' name, by the mapping
// that OpenTelemetry prescribes.
package metric
