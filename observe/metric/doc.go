// Package metric describes the numbers that the exporters below observe export: what
// each is called, what it means, and how it is read.
//
// A [Thing] is a kind of thing that has numbers, such as a Scheduler, and lists its
// metrics. A [Source] is where things of one kind are found. A [Set] reads sources. All
// exporters are made from these, so that no two of them can differ.
//
// # Names
//
// A metric's name follows OpenTelemetry's rules: words with dots between them, no unit,
// and no "total". [Metric.Prometheus] makes Prometheus' name of it, by the mapping that
// OpenTelemetry prescribes.
package metric
